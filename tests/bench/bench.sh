# What the tool takes, against the limits that it is held to. Best of several runs; the machine should be idle.
CC=${CC:-cc}
NEURO=${NEURO:-./neuro}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME="$dir"

now() { date +%s%N; }

# best RUNS COMMAND...: the shortest run, in microseconds
best() {
    runs=$1
    least=
    shift
    while [ "$runs" -gt 0 ]; do
        start=$(now)
        "$@" > /dev/null 2>&1
        took=$((($(now) - start) / 1000))
        if [ -z "$least" ] || [ "$took" -lt "$least" ]; then least=$took; fi
        runs=$((runs - 1))
    done
    echo "$least"
}

row() { printf '%-52s %9.1f ms   (limit %s)\n' "$1" "$(awk "BEGIN { print $2 / 1000 }")" "$3"; }

build/generate 10000 > "$dir/large.nr"
row "neuro check, $(wc -l < "$dir/large.nr" | tr -d ' ') lines" "$(best 7 "$NEURO" check "$dir/large.nr")" "100 ms"
if command -v /usr/bin/time > /dev/null; then
    printf '%-52s %9s MB   (limit 100 MB)\n' "    its memory" \
        "$(/usr/bin/time -f %M "$NEURO" check "$dir/large.nr" 2>&1 | tail -1 | awk '{ print int($1 / 1024) }')"
fi

printf '#include <stdio.h>\nint main(void) { puts("Hello, tensors!"); return 0; }\n' > "$dir/hello.c"
c=$(best 7 sh -c "$CC -O1 $dir/hello.c -o $dir/hello && $dir/hello")
first() { rm -rf "$dir/neuro"; "$NEURO" run examples/hello.nr; }
n=$(best 7 first)
row "neuro run examples/hello.nr, first time" "$n" "$(awk "BEGIN { printf \"%.1f\", $c * 1.5 / 1000 }") ms: 1.5 x cc -O1 hello.c && ./hello"
"$NEURO" run examples/hello.nr > /dev/null
row "neuro run examples/hello.nr, unchanged" "$(best 7 "$NEURO" run examples/hello.nr)" "15 ms"
"$NEURO" run examples/digits/digits.nr > /dev/null
row "neuro run examples/digits/digits.nr, unchanged" "$(best 7 "$NEURO" run examples/digits/digits.nr)" "-"
printf '#define NEURO_RUNTIME_ONLY 1\n#define NEURO_IMPLEMENTATION\n#include "neuro.h"\n' > "$dir/rt.c"
row "the runtime alone, $CC -O2" "$(best 2 "$CC" -std=c11 -O2 -I. -c "$dir/rt.c" -o "$dir/rt.o")" "1000 ms"
row "the driver, $CC -O1" "$(best 1 "$CC" -std=c11 -O1 -I. -c neuro_cli.c -o "$dir/cli.o")" "20 s with the runtime"

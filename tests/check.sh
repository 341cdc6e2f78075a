# The house rules that a script can hold, one line a step (STYLE in the design documents). Run by `make check` from the root.
CC=${CC:-cc}
CXX=${CXX:-c++}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
printf '#define NEURO_IMPLEMENTATION\n#include "neuro.h"\n' > "$dir/all.c"
printf '#define NEURO_RUNTIME_ONLY 1\n#define NEURO_IMPLEMENTATION\n#include "neuro.h"\n' > "$dir/runtime.c"
printf '#include "neuro.h"\n#include "neuro.h"\n#define NEURO_PROGRAM 1\n' > "$dir/declarations.c"
printf '#define NEURO_STATIC 1\n#define NEURO_IMPLEMENTATION\n#include "neuro.h"\nint main(void) { return 0; }\n' > "$dir/static.c"

say() { # NAME OUTPUT: a step that must print nothing
    if [ -z "$2" ]; then
        printf 'ok    %s\n' "$1"
    else
        failed=1
        printf 'FAIL  %s\n%s\n' "$1" "$(printf '%s' "$2" | head -40)"
    fi
}

# --- strict flags: every file, every compiler that is there, C11 and C++17 ---
c_flags="-std=c11 ${WARN_C:--Wall -Wextra}"
cxx_flags="-std=c++17 -x c++ ${WARN:--Wall -Wextra}"
for compiler in $(printf '%s\n' "$CC" gcc clang | sort -u); do
    command -v "$compiler" > /dev/null || { echo "skip  $compiler is not there"; continue; }
    for f in all runtime declarations static; do
        say "$compiler C11 strict: $f" "$($compiler $c_flags -I. -fsyntax-only "$dir/$f.c" 2>&1)"
    done
    say "$compiler C11 strict: neuro_cli.c" "$($compiler $c_flags -I. -fsyntax-only neuro_cli.c 2>&1)"
    for f in tests/run.c tests/fuzz/mutate.c tests/bench/generate.c examples/embed/embed.c; do
        say "$compiler C11: $f" "$($compiler -std=c11 -Wall -Wextra -Wshadow -I. -fsyntax-only $f 2>&1)"
    done
    say "$compiler -DNDEBUG" "$($compiler -std=c11 -Wall -Wextra -DNDEBUG -I. -fsyntax-only "$dir/all.c" 2>&1)"
    for cut in NEURO_NO_STDIO NEURO_NO_THREADS NEURO_NO_SIMD; do
        say "$compiler -D$cut=1" "$($compiler $c_flags -D$cut=1 -I. -fsyntax-only "$dir/all.c" 2>&1)"
    done
done
for compiler in $(printf '%s\n' "$CXX" g++ clang++ | sort -u); do
    command -v "$compiler" > /dev/null || { echo "skip  $compiler is not there"; continue; }
    for f in all runtime declarations; do
        say "$compiler C++17 strict: $f" "$($compiler $cxx_flags -I. -fsyntax-only "$dir/$f.c" 2>&1)"
    done
    say "$compiler C++17 strict: neuro_cli.c" "$($compiler $cxx_flags -I. -fsyntax-only neuro_cli.c 2>&1)"
done

# --- map: the sections in the guide are those of the file, in its order ---
grep '^//@@' neuro.h | awk '{ print $2 }' > "$dir/sections"
awk '/The map: sections in order/ { on = 1; next } on && /^ \*\// { exit }
     on && /^ \*    [a-z0-9-]+  / { print $2 }' neuro.h > "$dir/map"
say "map" "$(diff "$dir/map" "$dir/sections")"

# --- symbols: what is exported is neuro_*; nothing with NEURO_STATIC ---
$CC -std=c11 -O1 -w -I. -c "$dir/all.c" -o "$dir/all.o"
say "symbols: all are neuro_*" "$(nm -g --defined-only "$dir/all.o" | awk '{ print $3 }' | grep -v '^_*neuro_')"
$CC -std=c11 -w -I. -c "$dir/static.c" -o "$dir/static.o"
say "symbols: none with NEURO_STATIC" "$(nm -g --defined-only "$dir/static.o" | awk '{ print $3 }' | grep -v '^_*main$')"
say "symbols: no mutable data" "$(nm "$dir/all.o" | awk '$2 ~ /^[dDbBC]$/ { print $3 }' | grep -vE '^(nri_cpu|nri_pool)' \
    | while read -r name; do grep -qE "const [^;=]*\b${name%%.*}\b" neuro.h || echo "$name"; done)"

# --- macros: every option that is tested is described in the guide ---
say "macros: tested ones are in the guide" "$(grep -oE '^# *(if|elif|ifdef|ifndef)[^/]*' neuro.h | grep -oE 'NEURO_[A-Z0-9_]+' | sort -u |
    grep -vE '_INCLUDED$|_DONE$|^NEURO_(GNU|API|VERSION|RESTRICT|NORETURN|UNUSED)$' |
    while read -r m; do sed -n '/^\/\/@@ guide/,/^\/\/@@ config/p' neuro.h | grep -q "$m" || echo "$m"; done)"

# --- lengths: functions over 100 lines say why, lines stay within 140 columns ---
for f in neuro.h neuro_cli.c; do
    say "lengths: functions of $f" "$(awk '
        /long:/ { excused = NR }
        /^[a-z_][a-z0-9_]*\(/ { name = $0; sub(/\(.*/, "", name) }
        /^\{/ { start = NR; allowed = excused > NR - 12 && excused > 0 }
        /^\}/ { if (start && NR - start > 100 && !allowed && excused < start) print FILENAME ": " name " has " NR - start " lines"; start = 0 }' $f)"
    say "lengths: lines of $f" "$(awk 'length($0) > 140 { print FILENAME ":" NR ": " length($0) " columns" }' $f)"
    say "layout: no tabs, no trailing blanks in $f" "$(grep -nE "$(printf '\t')| \$" $f | head)"
done

# --- every diagnostic has its explanation and an example that gives it ---
say "explain: every code has a text" "$(./neuro explain | cut -d: -f1 | while read -r code; do
    [ "$(./neuro explain "$code" | wc -l)" -ge 3 ] || echo "$code"; done)"

[ $failed = 0 ] && echo "all checks passed"
exit $failed

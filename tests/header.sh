# Ways to include neuro.h, in C and C++, whole and cut [STYLE 11]: each is compiled, linked and run.
CC=${CC:-cc}
CXX=${CXX:-c++}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0
failed=0
skipped=0

# must NAME COMMAND...: succeeds
must() {
    name=$1
    shift
    if out=$("$@" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s\n%s\n' "$name" "$(printf '%s' "$out" | head -20)"
    fi
}

# A user that makes a tensor and frees it; the bodies are elsewhere.
cat > "$dir/user.c" << 'END'
#include "neuro.h"
#include "neuro.h"
int
main(void)
{
    neuro_tensor *t;
    const int64_t shape[] = { 2, 3 };
    if (neuro_tensor_zeros(NULL, NEURO_F32, 2, shape, &t, NULL) != NEURO_OK || neuro_tensor_len(t) != 6) {
        return 1;
    }
    neuro_tensor_release(&t);
    return t == NULL ? 0 : 1;
}
END
cp "$dir/user.c" "$dir/user.cc"
printf '#define NEURO_RUNTIME_ONLY 1\n#define NEURO_IMPLEMENTATION\n#include "neuro.h"\n' > "$dir/body.c"
cp "$dir/body.c" "$dir/body.cc"
{ printf '#include "neuro.h"\n#define NEURO_RUNTIME_ONLY_UNUSED 1\n#define NEURO_IMPLEMENTATION\n'; cat "$dir/user.c"; } > "$dir/late.c"
{ printf '#define NEURO_STATIC 1\n#define NEURO_IMPLEMENTATION\n#define NEURO_RUNTIME_ONLY 1\n'; cat "$dir/user.c"; } > "$dir/static.c"
printf '#define NEURO_STATIC 1\n#define NEURO_RUNTIME_ONLY 1\n#define NEURO_IMPLEMENTATION\n#include "neuro.h"\nint other(void);\nint other(void) { return 0; }\n' > "$dir/static2.c"

must "bodies in a file of their own" $CC -std=c11 -I. "$dir/user.c" "$dir/body.c" -o "$dir/a" -lm
must "which runs" "$dir/a"
must "declarations first, bodies late" $CC -std=c11 -I. "$dir/late.c" -o "$dir/b" -lm
must "which runs" "$dir/b"
must "NEURO_STATIC twice in a program" $CC -std=c11 -w -I. "$dir/static.c" "$dir/static2.c" -o "$dir/c" -lm
must "which runs" "$dir/c"
must "NEURO_NO_STDIO" $CC -std=c11 -I. -DNEURO_NO_STDIO=1 "$dir/user.c" "$dir/body.c" -o "$dir/d" -lm
must "which runs" "$dir/d"
must "NEURO_ALLOC" $CC -std=c11 -I. '-DNEURO_ALLOC(n)=calloc(1,n)' '-DNEURO_FREE(p)=free(p)' "$dir/user.c" "$dir/body.c" -o "$dir/e" -lm
must "which runs" "$dir/e"
if command -v "$CXX" > /dev/null; then
    $CC -std=c11 -I. -c "$dir/body.c" -o "$dir/body_c.o"
    $CC -std=c11 -I. -c "$dir/user.c" -o "$dir/user_c.o"
    must "C++ with bodies in C" $CXX -std=c++17 -I. "$dir/user.cc" "$dir/body_c.o" -o "$dir/f" -lm
    must "which runs" "$dir/f"
    must "C with bodies in C++" $CXX -std=c++17 -I. "$dir/user_c.o" "$dir/body.cc" -o "$dir/g" -lm
    must "which runs" "$dir/g"
else
    skipped=4
    echo "skipped: no C++ compiler '$CXX'"
fi
if command -v tcc > /dev/null; then
    must "tcc" tcc -std=c11 -I. "$dir/user.c" "$dir/body.c" -o "$dir/h" -lm
    must "which runs" "$dir/h"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]

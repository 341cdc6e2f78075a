# Tests of neuro_cli.c [U1, G5]: commands, options, exit status, the cache, compilers that are missing or fail.
# Run by tests/run from the root of the project; NEURO and CC say what to test.
NEURO=$(cd "$(dirname "${NEURO:-./neuro}")" && pwd)/$(basename "${NEURO:-./neuro}")
CC=${CC:-cc}
root=$(pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
cd "$dir" || exit 2
export XDG_CACHE_HOME="$dir/cache" TMPDIR="$dir/tmp"
mkdir cache tmp
passed=0
failed=0

# check NAME STATUS TEXT COMMAND...: the command ends with STATUS, and what it prints contains TEXT.
check() {
    name=$1 status=$2 text=$3
    shift 3
    out=$("$@" 2>&1 < /dev/null)
    got=$?
    case $out in
        *"$text"*) ;;
        *) got="$got without '$text'" ;;
    esac
    verdict "$name" "$status" "$got" "$out"
}

# verdict NAME WANTED GOT [WORDS]
verdict() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: wanted %s, got %s\n%s\n' "$1" "$2" "$3" "${4:-}"
    fi
}

cat > hello.nr << 'END'
func main() { println("hello") }
END
cat > seven.nr << 'END'
func main() -> i32 { 7 }
END
cat > wrong.nr << 'END'
func main() { val x: i32 = true }
END
cat > warns.nr << 'END'
func main() {
    return
    println("never")
}
END
cat > panics.nr << 'END'
func main() {
    println("before")
    panic("enough")
}
END
cat > deep.nr << 'END'
func down(n: i64) -> i64 { if n == 0 { 0 } else { 1 + down(n + 1) } }
func main() { println("{down(1)}") }
END
printf 'func f(a: i32) -> i32 { a }\n' > library.nr
mkdir folder

# usage
check "no command" 2 "usage: neuro COMMAND" "$NEURO"
check "--help" 0 "check    reports" "$NEURO" --help
check "--version" 0 "neuro 0." "$NEURO" --version
for c in check run build emit explain; do
    check "$c --help" 0 "usage: neuro $c" "$NEURO" $c --help
done
check "later commands are not there" 2 "no command 'fmt'" "$NEURO" fmt hello.nr
check "unknown command" 2 "no command 'chek'" "$NEURO" chek hello.nr
check "file for a command" 2 "did you mean \`neuro run hello.nr\`" "$NEURO" hello.nr
check "unknown option" 2 "unknown option '--jsn'" "$NEURO" check --jsn hello.nr
check "option of another command" 2 "does not take --shared" "$NEURO" check --shared hello.nr
check "option without value" 2 "-o needs a value" "$NEURO" build hello.nr -o
check "bad level" 2 "-O takes 0, 1, 2 or 3" "$NEURO" run -O4 hello.nr
check "bad colour" 2 "auto, always or never" "$NEURO" check --color=red hello.nr
check "bad threads" 2 "from 1 to 4096" "$NEURO" run --threads 0 hello.nr
check "no file" 2 "needs a file" "$NEURO" check
check "two files" 2 "second one" "$NEURO" build hello.nr seven.nr
check "shared and static" 2 "exclude each other" "$NEURO" build --shared --static hello.nr

# files
check "missing file" 2 "no file 'nowhere.nr'" "$NEURO" check nowhere.nr
check "missing ending" 2 "did you mean 'hello.nr'" "$NEURO" run hello
check "directory" 2 "is a directory" "$NEURO" check folder
: > empty.nr
check "empty file" 0 "" "$NEURO" check empty.nr
head -c 17000000 /dev/zero | tr '\0' ' ' > large.nr
check "file too large" 1 "E0113" "$NEURO" check large.nr
rm large.nr

# check
check "a right program" 0 "" "$NEURO" check hello.nr
check "a wrong program" 1 "1 error" "$NEURO" check wrong.nr
check "several files" 1 "wrong.nr:1:28" "$NEURO" check hello.nr wrong.nr seven.nr
check "a missing one among them" 2 "1 error" "$NEURO" check nowhere.nr wrong.nr
check "JSON" 1 '{"severity":"error","code":"E0310","file":"wrong.nr","line":1,' "$NEURO" check --json wrong.nr
check "warnings are no errors" 0 "1 warning" "$NEURO" check warns.nr
check "but with --strict" 1 "errors under --strict" "$NEURO" check --strict warns.nr
check "colour on demand" 1 "$(printf '\033[')" "$NEURO" check --color always wrong.nr
"$NEURO" check wrong.nr 2>&1 | grep -q "$(printf '\033')"
verdict "no colour in a pipe" 1 $?
check "times" 0 "time: parse" "$NEURO" check --time hello.nr

# explain
check "explain" 0 "E0310: " "$NEURO" explain E0310
check "explain in small letters" 0 "E0310: " "$NEURO" explain e0310
check "all codes" 0 "E0101: " "$NEURO" explain
check "unknown code" 2 "no code 'E9999'" "$NEURO" explain E9999

# run
check "run" 0 "hello" "$NEURO" run hello.nr
check "the program's status" 7 "" "$NEURO" run seven.nr
check "the program's status at every level" 7 "" "$NEURO" run -O3 seven.nr
check "-O with a space" 7 "" "$NEURO" run -O 2 seven.nr
check "a panic" 134 "panic at panics.nr:3:5: enough" "$NEURO" run panics.nr
check "what was printed before it" 134 "before" "$NEURO" run panics.nr
check "endless recursion is explained" 139 "recursion" "$NEURO" run deep.nr
check "nothing to run" 1 "no \`func main()\`" "$NEURO" run library.nr
check "warnings of a program that runs" 0 "warning" "$NEURO" run warns.nr
check "warnings of a cached program, again" 0 "warning" "$NEURO" run warns.nr
check "--strict with a cached program" 1 "1 warning" "$NEURO" run --strict warns.nr
check "arguments belong to the program" 0 "hello" "$NEURO" run hello.nr --help -O9

# the cache: unchanged programs do not start the compiler, damaged entries are made again
cat > counting-cc << END
#!/bin/sh
echo x >> "$dir/started"
exec $CC "\$@"
END
chmod +x counting-cc
started() { if [ -f "$dir/started" ]; then grep -c x "$dir/started"; else echo 0; fi; }
check "first run" 0 "hello" "$NEURO" run --cc ./counting-cc hello.nr
once=$(started)
check "second run" 0 "hello" "$NEURO" run --cc ./counting-cc hello.nr
verdict "an unchanged program does not start the compiler" "$once" "$(started)"
check "changed flags" 0 "hello" "$NEURO" run -O1 --cc ./counting-cc hello.nr
verdict "changed flags do" $((once + 1)) "$(started)"
for f in cache/neuro/*; do printf 'damage' | dd of="$f" bs=1 seek=900 conv=notrunc 2> /dev/null; done
check "damaged entries" 0 "hello" "$NEURO" run hello.nr
for f in cache/neuro/*; do : > "$f"; done
check "emptied entries" 0 "hello" "$NEURO" run hello.nr
rm -rf cache/neuro
for i in 1 2 3 4 5 6; do "$NEURO" run hello.nr > "out$i" 2>&1 & done
wait
verdict "concurrent first runs" "6" "$(cat out? | grep -c '^hello$')" "$(cat out?)"
verdict "the cache is private" "drwx------" "$(ls -ld cache/neuro | cut -c 1-10)"
check "no home, no cache" 0 "hello" env -u XDG_CACHE_HOME -u HOME "$NEURO" run hello.nr

# compilers
check "a missing --cc" 2 "'nowhere-cc' that --cc names was not found" "$NEURO" run --cc nowhere-cc hello.nr
check "a missing CC" 2 "the environment variable CC names" env CC=nowhere-cc "$NEURO" build hello.nr
check "no compiler at all" 2 "no C compiler was found" env -u CC PATH=/nowhere "$NEURO" build hello.nr
check "a CC with words" 0 "" env CC="$CC -pipe" "$NEURO" build hello.nr -o with-words
printf '#!/bin/sh\necho it is broken\nexit 1\n' > broken-cc
chmod +x broken-cc
check "a compiler that fails always" 2 "does not compile even an empty program" "$NEURO" run --cc ./broken-cc hello.nr
cat > picky-cc << END
#!/bin/sh
case "\$*" in *hello.c*) echo not this one; exit 1;; esac
exec $CC "\$@"
END
chmod +x picky-cc
check "a compiler that fails on our text" 2 "this is a bug of neuro" "$NEURO" run --cc ./picky-cc hello.nr
verdict "the C file is kept" 1 "$(ls tmp/neuro-*/hello.c 2> /dev/null | grep -c .)"
rm -rf tmp/neuro-*
check "a target without compiler" 2 "no C compiler for pdp11-unix" env -u CC PATH=/nowhere "$NEURO" build --target pdp11-unix hello.nr

# build and emit
check "build" 0 "" "$NEURO" build hello.nr
check "the executable" 0 "hello" ./hello
check "build -o" 0 "" "$NEURO" build -o other -O2 hello.nr
check "the other executable" 0 "hello" ./other
check "a runtime of other flags" 0 "" "$NEURO" build --cc "$CC -DOTHER" hello.nr -o flagged
check "is compiled once" 0 "" "$NEURO" build --cc "$CC -DOTHER" --time seven.nr -o flagged
case $out in *"C runtime"*) verdict "the second time it comes from the cache" cached compiled ;; *) verdict "cache" 0 0 ;; esac
printf 'export func twice(x: i32) -> i32 { 2 * x }\n' > twice.nr
check "shared library" 0 "" "$NEURO" build --shared twice.nr
verdict "its name" 1 "$(ls libtwice.* 2> /dev/null | grep -c .)"
check "nowhere to write" 2 "cannot write 'nowhere/hello'" "$NEURO" build hello.nr -o nowhere/hello
check "over the source" 2 "overwrite the program" "$NEURO" emit hello.nr -o hello.nr
check "emit" 0 '#include "neuro.h"' "$NEURO" emit hello.nr
check "emit -o --header" 0 "" "$NEURO" emit twice.nr -o twice.c --header twice.h
check "the header" 0 "twice" cat twice.h
cat > caller.c << 'END'
#define NEURO_RUNTIME_ONLY 1
#define NEURO_IMPLEMENTATION
#include "neuro.h"
#include "twice.h"
#include <stdio.h>
int main(void)
{
    int32_t y = 0;
    neuro_error error;
    neuro_result result = twice(21, &y, &error);
    printf("%d %d\n", (int)result, (int)y);
    return 0;
}
END
check "compiled into a C program" 0 "" $CC -std=c11 -I. -I"$root" caller.c twice.c -o caller -lm
check "which calls it" 0 "0 42" ./caller
check "emit --line" 0 '#line' "$NEURO" emit --line hello.nr
if [ -e /dev/full ]; then
    "$NEURO" emit hello.nr > /dev/full 2> full.txt
    verdict "a full disk" 2 $? "$(cat full.txt)"
fi
verdict "no temporary file is left" 0 "$(ls tmp | grep -c .)" "$(ls -R tmp)"

echo "$passed passed, $failed failed"
[ $failed = 0 ]

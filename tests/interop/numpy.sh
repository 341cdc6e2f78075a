# Files that NumPy writes are read; those that a program cannot use are errors that say so [T5].
NEURO=$(cd "$(dirname "${NEURO:-./neuro}")" && pwd)/$(basename "${NEURO:-./neuro}")
python=
for p in python3 /usr/bin/python3; do
    if $p -c 'import numpy' 2> /dev/null; then python=$p; break; fi
done
if [ -z "$python" ]; then
    echo "skipped: NumPy is not there"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2

cat > write.py << 'END'
import numpy as np
a = np.arange(6).reshape(2, 3) * 7 - 3
for name in ["int32", "int64", "uint8", "float32", "float64", "bool"]:
    np.save(name + ".npy", (a.astype("float64") / 4 if name.startswith("float") else a).astype(name))
np.save("rank0.npy", np.float32(2.5))
np.save("empty.npy", np.zeros((0, 3), "float32"))
np.save("fortran.npy", np.asfortranarray(a.astype("int32")))
np.save("big.npy", a.astype(">i4"))
np.save("text.npy", np.array(["a", "b"]))
np.save("shape.npy", np.zeros((3, 2), "int32"))
with open("long.npy", "wb") as f:
    np.lib.format.write_array(f, a.astype("int32"), version=(2, 0))
with open("int32.npy", "rb") as f:
    whole = f.read()
open("cut.npy", "wb").write(whole[:-5])
open("header.npy", "wb").write(whole[:40])
open("noise.npy", "wb").write(b"not numpy at all")
END
$python write.py || exit 2

# One program a file.
passed=0
failed=0
expect() { # NAME TYPE SHAPE FILE WANTED
    cat > one.nr << END
const FILE = "$4"

func main() {
    match Tensor::<$2, [$3]>::load_npy(FILE) {
        Result::Ok(t) => println("{t}")
        Result::Err(why) => println("error: {why}")
    }
}
END
    out=$("$NEURO" run one.nr 2>&1)
    case $out in
        *"$5"*) passed=$((passed + 1)) ;;
        *) failed=$((failed + 1)); printf 'FAIL %s: wanted %s, got %s\n' "$1" "$5" "$out" ;;
    esac
}
ints='[[-3,  4, 11],
 [18, 25, 32]]'
expect i32 i32 "2, 3" int32.npy "$ints"
expect i64 i64 "2, 3" int64.npy "$ints"
expect u8 u8 "2, 3" uint8.npy '[[253,   4,  11],
 [ 18,  25,  32]]'
expect f32 f32 "2, 3" float32.npy '[[-0.7500,  1.0000,  2.7500],'
expect f64 f64 "2, 3" float64.npy '[[-0.7500,  1.0000,  2.7500],'
expect bool bool "2, 3" bool.npy 'true'
expect "rank 0" f32 "" rank0.npy '2.5000'
expect "an empty one" f32 "0, 3" empty.npy '[]'
expect "a long header" i32 "2, 3" long.npy "$ints"
expect "a wrong type" f32 "2, 3" int32.npy 'error: '
expect "its message" f32 "2, 3" int32.npy 'i32'
expect "a wrong shape" i32 "2, 3" shape.npy '[3, 2]'
expect "a wrong rank" i32 "6" int32.npy '[2, 3]'
expect "Fortran order" i32 "2, 3" fortran.npy 'error: '
expect "big-endian" i32 "2, 3" big.npy 'error: '
expect "text" i32 "2" text.npy 'error: '
expect "a cut file" i32 "2, 3" cut.npy 'error: '
expect "a cut header" i32 "2, 3" header.npy 'error: '
expect "noise" i32 "2, 3" noise.npy 'error: '
expect "no file" i32 "2, 3" nowhere.npy 'nowhere.npy'
echo "$passed passed, $failed failed"
[ $failed = 0 ]

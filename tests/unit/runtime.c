/* Unit tests of the runtime: text, products, reductions, contractions, handles, files, panics, memory. Includes the bodies and looks at
 * private state. Prints "N passed, N failed"; the exit status says whether any failed. */
#include <stddef.h>

static void *test_alloc(size_t bytes);
static void test_free(void *ptr);
#define NEURO_ALLOC(bytes) test_alloc(bytes)
#define NEURO_FREE(ptr) test_free(ptr)
#define NEURO_RUNTIME_ONLY 1
#define NEURO_IMPLEMENTATION
#include "neuro.h"

static int n_passed;
static int n_failed;

#define CHECK(claim) check((claim), #claim, __LINE__)

static void
check(bool claim, const char *text, int line)
{
    if (claim) {
        n_passed++;
    } else {
        n_failed++;
        if (n_failed <= 40) {
            printf("runtime.c:%d: not so: %s\n", line, text);
        }
    }
}

/* The default allocator: counts what lives, fails allocation `fail_at` (from 1) and all later ones. */
static long n_live;
static long n_allocs;
static long fail_at;

static void *
test_alloc(size_t bytes)
{
    n_allocs++;
    if ((fail_at != 0 && n_allocs >= fail_at) || bytes > (size_t)1 << 40) {
        return NULL;
    }
    n_live++;
    return malloc(bytes);
}

static void
test_free(void *ptr)
{
    n_live--;
    free(ptr);
}

static uint64_t random_state = 88172645463325252u;

static uint64_t
random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static int64_t
random_below(int64_t n)
{
    return (int64_t)(random_bits() >> 1) % n;
}

static double
random_unit(void)
{
    return (double)(random_bits() >> 11) * (1.0 / 9007199254740992.0) * 2 - 1;
}

static bool
text_is(const char *text, int len, const char *wanted)
{
    bool same = (size_t)len == strlen(wanted) && memcmp(text, wanted, (size_t)len) == 0;
    if (!same) {
        printf("  found \"%.*s\", wanted \"%s\"\n", len, text, wanted);
    }
    return same;
}

static bool
contains(const char *text, const char *part)
{
    bool there = strstr(text, part) != NULL;
    if (!there) {
        printf("  found \"%s\", wanted \"%s\" in it\n", text, part);
    }
    return there;
}

/* --- text --- */

static bool
repr_is(double x, const char *wanted)
{
    char text[NRI_TEXT_MAX];
    return text_is(text, nri_text_f64(x, text), wanted);
}

static bool
repr32_is(float x, const char *wanted)
{
    char text[NRI_TEXT_MAX];
    return text_is(text, nri_text_f32(x, text), wanted);
}

static bool
fixed_is(double x, int precision, bool exponent, const char *wanted)
{
    char text[NRI_FIXED_MAX];
    return text_is(text, nri_text_rounded(nri_bits_f64(x), NRI_FORMAT_F64, precision, exponent, text), wanted);
}

static void
test_float_text(void)
{
    CHECK(repr_is(0.0, "0.0") && repr_is(-0.0, "-0.0") && repr_is(6.0, "6.0") && repr_is(0.1, "0.1"));
    CHECK(repr_is(1e-5, "1e-05") && repr_is(1e-4, "0.0001") && repr_is(1e15, "1000000000000000.0") && repr_is(1e16, "1e+16"));
    CHECK(repr_is(INFINITY, "inf") && repr_is(-INFINITY, "-inf") && repr_is(NAN, "nan"));
    CHECK(repr_is(5e-324, "5e-324") && repr_is(1.7976931348623157e308, "1.7976931348623157e+308"));
    CHECK(repr_is(2.2250738585072014e-308, "2.2250738585072014e-308") && repr_is(9007199254740993.0, "9007199254740992.0"));
    CHECK(repr_is(5.684341886080802e-14, "5.684341886080802e-14") && repr_is(123456789012345680.0, "1.2345678901234568e+17"));
    CHECK(repr_is(2e22, "2e+22") && repr_is(1e23, "1e+23") && repr_is(9.5367431640625e-07, "9.5367431640625e-07"));
    CHECK(repr32_is(0.1f, "0.1") && repr32_is(16777216.0f, "16777216.0") && repr32_is(1e-45f, "1e-45"));
    CHECK(repr32_is(3.4028235e38f, "3.4028235e+38") && repr32_is(1.17549435e-38f, "1.1754944e-38"));
    CHECK(fixed_is(0.5, 0, false, "0") && fixed_is(1.5, 0, false, "2") && fixed_is(2.5, 0, false, "2"));
    CHECK(fixed_is(0.125, 2, false, "0.12") && fixed_is(0.375, 2, false, "0.38") && fixed_is(2.675, 2, false, "2.67"));
    CHECK(fixed_is(999.9996, 3, false, "1000.000") && fixed_is(-0.001, 2, false, "-0.00") && fixed_is(0.05, 1, false, "0.1"));
    CHECK(fixed_is(1e22, 1, false, "10000000000000000000000.0") && fixed_is(0.1, 20, false, "0.10000000000000000555"));
    CHECK(fixed_is(123456.0, 4, true, "1.2346e+05") && fixed_is(0.0, 2, true, "0.00e+00") && fixed_is(9.9999e-5, 2, true, "1.00e-04"));
    CHECK(fixed_is(1234.5, -1, true, "1.2345e+03") && fixed_is(1e-310, -1, true, "1e-310"));
}

static bool
hex_is(double x, const char *wanted)
{
    char text[NRI_TEXT_MAX];
    return text_is(text, nri_text_hex_f64(x, text), wanted);
}

static bool
parse_is(const char *text, double wanted, bool fits)
{
    double x = 0;
    bool ok = nri_parse_f64(nri_str_of(text), &x);
    return ok == fits && nri_bits_f64(x) == nri_bits_f64(wanted);
}

static void
test_parse(void)
{
    float f = 0;
    neuro_f16 h;
    neuro_bf16 b;
    CHECK(hex_is(3.0, "0x1.8p+1") && hex_is(0.0, "0x0p+0") && hex_is(-1.0, "-0x1p+0") && hex_is(0.1, "0x1.999999999999ap-4"));
    CHECK(hex_is(5e-324, "0x1p-1074"));
    CHECK(parse_is("0", 0, true) && parse_is("-0.0", -0.0, true) && parse_is("1e400", INFINITY, false) && parse_is("1e-400", 0, true));
    CHECK(parse_is("0.1", 0.1, true) && parse_is("1.7976931348623158e308", 1.7976931348623157e308, true));
    CHECK(parse_is("1.7976931348623159e308", INFINITY, false) && parse_is("2.4703282292062327e-324", 0, true));
    CHECK(parse_is("2.4703282292062328e-324", 5e-324, true) && parse_is("9007199254740993", 9007199254740992.0, true));
    CHECK(parse_is("9007199254740993.0000000000000000000000000000000000000000001", 9007199254740994.0, true));
    CHECK(parse_is("00000000000000000000000000000000000000000000000000000.0000000001e10", 1.0, true));
    CHECK(!parse_is("", 1, true) && !parse_is(".", 1, true) && !parse_is("1e", 1, true) && !parse_is("1x", 1, true));
    CHECK(nri_parse_f32(NRI_S("16777217"), &f) && f == 16777216.0f);
    CHECK(nri_parse_f32(NRI_S("16777217.000000001"), &f) && f == 16777218.0f);       /* once, not by way of f64 */
    CHECK(!nri_parse_f32(NRI_S("3.5e38"), &f) && nri_parse_f32(NRI_S("3.4028235677e38"), &f));
    CHECK(nri_parse_f16(NRI_S("0.1"), &h) && h.bits == 0x2e66 && nri_parse_f16(NRI_S("65519"), &h) && h.bits == 0x7bff);
    CHECK(!nri_parse_f16(NRI_S("65520"), &h) && h.bits == 0x7c00 && nri_parse_bf16(NRI_S("3.14159"), &b) && b.bits == 0x4049);
}

static void
test_text_round_trips(void)
{
    int bad = 0;
    char text[NRI_TEXT_MAX];
    for (int i = 0; i < 4000; i++) {
        double x;
        double y = 0;
        uint64_t bits = i % 3 == 0 ? random_bits() : i % 3 == 1 ? nri_bits_f64(random_unit() * 1e6) : random_bits() >> 12;
        memcpy(&x, &bits, sizeof x);
        (void)nri_parse_f64(nri_str_make(text, nri_text_f64(x, text)), &y);
        bad += x == x && fabs(x) <= DBL_MAX && nri_bits_f64(x) != nri_bits_f64(y) ? 1 : 0;
        float f;
        float g = 0;
        uint32_t low = (uint32_t)random_bits();
        memcpy(&f, &low, sizeof f);
        (void)nri_parse_f32(nri_str_make(text, nri_text_f32(f, text)), &g);
        bad += f == f && fabsf(f) <= FLT_MAX && nri_bits_f32(f) != nri_bits_f32(g) ? 1 : 0;
    }
    CHECK(bad == 0);
    for (unsigned i = 0; i < 0x7c00; i++) {                     /* all halves: by text, by f32, by f64 */
        neuro_f16 h;
        neuro_f16 again;
        h.bits = (uint16_t)i;
        (void)nri_parse_f16(nri_str_make(text, nri_text_float(i, NRI_FORMAT_F16, text)), &again);
        bad += again.bits != i || neuro_f16_from_f32(neuro_f32_from_f16(h)).bits != i ? 1 : 0;
    }
    for (unsigned i = 0; i < 0x7f80; i += 3) {
        neuro_bf16 h;
        neuro_bf16 again;
        h.bits = (uint16_t)i;
        (void)nri_parse_bf16(nri_str_make(text, nri_text_float(i, NRI_FORMAT_BF16, text)), &again);
        bad += again.bits != i || neuro_bf16_from_f32(neuro_f32_from_bf16(h)).bits != i ? 1 : 0;
    }
    CHECK(bad == 0);
}

static void
test_halves(void)
{
    CHECK(neuro_f16_from_f64(65519.99).bits == 0x7bff && neuro_f16_from_f64(65520).bits == 0x7c00);
    CHECK(neuro_f16_from_f64(2.98023223876953125e-8).bits == 0 && neuro_f16_from_f64(2.9802322387695317e-8).bits == 1);
    CHECK(neuro_f16_from_f64(-1e-300).bits == 0x8000 && (neuro_f16_from_f64(NAN).bits & 0x7fff) == 0x7e00);
    CHECK(neuro_f16_from_f64(1.00048828125).bits == 0x3c00 && neuro_f16_from_f64(1.0004882812500002).bits == 0x3c01);
    CHECK(neuro_bf16_from_f64(3.4e38).bits == 0x7f80 && neuro_bf16_from_f64(-INFINITY).bits == 0xff80);
    neuro_f16 inf = { 0xfc00 };
    neuro_f16 nan = { 0x7c01 };
    CHECK(neuro_f32_from_f16(inf) == -INFINITY && neuro_is_nan_f32(neuro_f32_from_f16(nan)));
}

/* --- environments: texts, panics --- */

typedef struct call {
    int what;
    const neuro_tensor *given;
    neuro_tensor *result;
    neuro_tensor *adopted;
    char text[512];
} call;

static void
keep(call *c, neuro_text *text)
{
    neuro_rt_put(text, "", 1);
    snprintf(c->text, sizeof c->text, "%s", text->ptr);
    neuro_string s = neuro_rt_finish(text);
    neuro_rt_string_free(text->env, &s);
}

#define SHOW(put, x, spec, wanted) \
    do { \
        neuro_text show_text = neuro_rt_text(env); \
        put(&show_text, x, spec); \
        keep(c, &show_text); \
        CHECK(text_is(c->text, (int)strlen(c->text), wanted)); \
    } while (0)

static void
spec_body(neuro_env *env, void *arguments)
{
    call *c = (call *)arguments;
    neuro_string word = neuro_lit("h\xc3\xa4t", 4);
    neuro_string odd = neuro_lit("a\n\"\x01\\", 5);
    SHOW(neuro_rt_put_i64, 42, "", "42");
    SHOW(neuro_rt_put_i64, INT64_MIN, "", "-9223372036854775808");
    SHOW(neuro_rt_put_i64, -42, "6", "   -42");
    SHOW(neuro_rt_put_i64, -42, "06", "-00042");
    SHOW(neuro_rt_put_i64, 42, "+", "+42");
    SHOW(neuro_rt_put_i64, 42, "*<6", "42****");
    SHOW(neuro_rt_put_i64, 42, "\xc3\xa4^7", "\xc3\xa4\xc3\xa4" "42\xc3\xa4\xc3\xa4\xc3\xa4");
    SHOW(neuro_rt_put_i64, 255, "x", "ff");
    SHOW(neuro_rt_put_i64, -255, "x", "-ff");
    SHOW(neuro_rt_put_u64, 5, "08b", "00000101");
    SHOW(neuro_rt_put_u64, UINT64_MAX, "o", "1777777777777777777777");
    SHOW(neuro_rt_put_u64, 12345, ".2e", "1.23e+04");
    SHOW(neuro_rt_put_u64, 1200, "e", "1.2e+03");
    SHOW(neuro_rt_put_f64, 3.14159, ".2", "3.14");
    SHOW(neuro_rt_put_f64, 3.14159, "8.2", "    3.14");
    SHOW(neuro_rt_put_f64, -3.14159, "08.2", "-0003.14");
    SHOW(neuro_rt_put_f64, 3.14159, "<8.2", "3.14    ");
    SHOW(neuro_rt_put_f64, 1234.5, ".3e", "1.234e+03");
    SHOW(neuro_rt_put_f64, 1.0, "+", "+1.0");
    SHOW(neuro_rt_put_f64, (double)INFINITY, "06", "   inf");
    SHOW(neuro_rt_put_f64, (double)NAN, "+", "nan");
    SHOW(neuro_rt_put_f64, 2.5, ".0", "2");
    SHOW(neuro_rt_put_f32, 0.1f, "", "0.1");
    SHOW(neuro_rt_put_f16, neuro_f16_from_f64(0.1), "", "0.1");
    SHOW(neuro_rt_put_bf16, neuro_bf16_from_f64(3.14159), "", "3.14");
    SHOW(neuro_rt_put_bool, true, "6", "true  ");
    SHOW(neuro_rt_put_bool, false, ">7", "  false");
    SHOW(neuro_rt_put_char, 0x1f600u, "", "\xf0\x9f\x98\x80");
    SHOW(neuro_rt_put_char, 10u, "?", "'\\n'");
    SHOW(neuro_rt_put_char, 0u, "?", "'\\0'");
    SHOW(neuro_rt_put_string, &word, ">5", "  h\xc3\xa4t");
    SHOW(neuro_rt_put_string, &word, ".2", "h\xc3\xa4");
    SHOW(neuro_rt_put_string, &word, "_^7.2", "__h\xc3\xa4___");
    SHOW(neuro_rt_put_string, &odd, "?", "\"a\\n\\\"\\u{1}\\\\\"");
    SHOW(neuro_rt_put_string, &word, "<<5", "h\xc3\xa4t<<");
    neuro_text text = neuro_rt_text(env);
    neuro_rt_put(&text, "(1, ", 4);
    neuro_rt_put(&text, "h\xc3\xa4)", 4);
    neuro_rt_pad(&text, 4, "\xc3\xa4^8");
    keep(c, &text);
    CHECK(text_is(c->text, (int)strlen(c->text), "(1, \xc3\xa4\xc3\xa4h\xc3\xa4)\xc3\xa4\xc3\xa4\xc3\xa4"));
    neuro_string a = neuro_lit("ab", 2);
    neuro_string b = neuro_lit("abc", 3);
    neuro_string ab = neuro_rt_string_concat(env, &a, &b);
    neuro_string copy = neuro_rt_string_clone(env, &ab);
    CHECK(neuro_rt_string_compare(&ab, &copy) == 0 && neuro_rt_string_compare(&a, &b) < 0 && neuro_rt_string_compare(&b, &a) > 0);
    neuro_rt_string_free(env, &ab);
    neuro_rt_string_free(env, &copy);
}

static void
test_specs(void)
{
    call c;
    CHECK(neuro_rt_export(spec_body, &c, NULL) == NEURO_OK);
    CHECK(n_live == 0);
}

static bool
shows(const neuro_tensor *t, const char *spec, const char *wanted)
{
    static char text[8192];
    size_t len = 0;
    neuro_result result = neuro_tensor_text(t, spec, text, sizeof text, &len, NULL);
    return result == NEURO_OK && text_is(text, (int)len, wanted);
}

static neuro_tensor *
make(neuro_dtype dtype, int rank, const int64_t *shape, const void *elements)
{
    neuro_tensor *t = NULL;
    if (elements != NULL) {
        CHECK(neuro_tensor_from(NULL, dtype, rank, shape, elements, &t, NULL) == NEURO_OK);
    } else {
        CHECK(neuro_tensor_zeros(NULL, dtype, rank, shape, &t, NULL) == NEURO_OK);
    }
    return t;
}

static bool
shows_f64(int rank, const int64_t *shape, const double *elements, const char *spec, const char *wanted)
{
    neuro_tensor *t = make(NEURO_F64, rank, shape, elements);
    bool same = shows(t, spec, wanted);
    neuro_tensor_release(&t);
    return same;
}

static void
test_show(void)
{
    const int64_t two_three[] = { 2, 3 };
    const int64_t cube[] = { 2, 2, 2 };
    const int64_t long_one[] = { 1001 };
    const int64_t wide[] = { 40, 40 };
    const int64_t empty[] = { 2, 0 };
    const int32_t ints[] = { 1, 2, 3, 4, -50, 6, 7, 8 };
    const bool truths[] = { true, false, true };
    const double floats[] = { 0.5, -1.25, 2, 0.00001, INFINITY, NAN };
    neuro_tensor *t = make(NEURO_I32, 2, two_three, ints);
    CHECK(shows(t, "", "[[  1,   2,   3],\n [  4, -50,   6]]"));
    CHECK(shows(t, "5", "[[    1,     2,     3],\n [    4,   -50,     6]]"));
    neuro_tensor_release(&t);
    t = make(NEURO_I32, 3, cube, ints);
    CHECK(shows(t, "", "[[[  1,   2],\n  [  3,   4]],\n\n [[-50,   6],\n  [  7,   8]]]"));
    neuro_tensor_release(&t);
    t = make(NEURO_BOOL, 1, two_three + 1, truths);
    CHECK(shows(t, "", "[ true, false,  true]"));
    neuro_tensor_release(&t);
    t = make(NEURO_F32, 2, empty, NULL);
    CHECK(shows(t, "", "[[],\n []]"));
    neuro_tensor_release(&t);
    t = make(NEURO_U8, 1, long_one, NULL);
    CHECK(shows(t, "", "[0, 0, 0, ..., 0, 0, 0]"));
    neuro_tensor_release(&t);
    t = make(NEURO_U8, 2, wide, NULL);
    CHECK(shows(t, "", "[[0, 0, 0, ..., 0, 0, 0],\n [0, 0, 0, ..., 0, 0, 0],\n [0, 0, 0, ..., 0, 0, 0],\n ...,\n"
                       " [0, 0, 0, ..., 0, 0, 0],\n [0, 0, 0, ..., 0, 0, 0],\n [0, 0, 0, ..., 0, 0, 0]]"));
    neuro_tensor_release(&t);
    CHECK(shows_f64(1, two_three + 1, floats, "", "[ 0.5000, -1.2500,  2.0000]"));
    CHECK(shows_f64(1, two_three + 1, floats, ".1", "[ 0.5, -1.2,  2.0]"));
    CHECK(shows_f64(1, two_three + 1, floats, ".2e", "[ 5.00e-01, -1.25e+00,  2.00e+00]"));
    CHECK(shows_f64(1, two_three + 1, floats + 3, "", "[1.0000e-05,        inf,        nan]"));
    CHECK(shows_f64(0, NULL, floats, "", "0.5000"));
    t = make(NEURO_I32, 3, cube, ints);
    char small[6];
    size_t len = 0;
    CHECK(neuro_tensor_text(t, "", small, sizeof small, &len, NULL) == NEURO_OK && len == 58 && strcmp(small, "[[[  ") == 0);
    CHECK(neuro_tensor_text(t, "", NULL, 0, &len, NULL) == NEURO_OK && len == 58);
    neuro_tensor_release(&t);
    CHECK(n_live == 0);
}

static void
panic_body(neuro_env *env, void *arguments)
{
    call *c = (call *)arguments;
    const int64_t shape[] = { 3, 5 };
    const int64_t huge[] = { INT64_MAX / 2, 3 };
    neuro_tensor *t = neuro_rt_zeros(env, NEURO_F32, 2, shape, "a.nr:1:1");
    neuro_text text = neuro_rt_text(env);
    neuro_rt_put(&text, "some text ", 10);
    neuro_rt_put_tensor(&text, t, "");
    switch (c->what) {
    case 0: neuro_rt_panic(env, "a.nr:2:3", "by hand");
    case 1: neuro_rt_panic_text(env, "a.nr:2:3", &text);
    case 2: (void)neuro_add_u8(env, 200, 100, "a.nr:2:3"); break;
    case 3: (void)neuro_mul_i64(env, INT64_MAX, -2, "a.nr:2:3"); break;
    case 4: (void)neuro_neg_i8(env, -128, "a.nr:2:3"); break;
    case 5: (void)neuro_div_i32(env, INT32_MIN, -1, "a.nr:2:3"); break;
    case 6: (void)neuro_rem_u16(env, 3, 0, "a.nr:2:3"); break;
    case 7: (void)neuro_shl_i32(env, 1, 32, "a.nr:2:3"); break;
    case 8: (void)neuro_index(env, 17, 4, 0, "a.nr:2:3"); break;
    case 9: (void)neuro_index(env, -1, 4, 1, "a.nr:2:3"); break;
    case 10: (void)neuro_array_index(env, 9, 4, "a.nr:2:3"); break;
    case 11: (void)neuro_rt_device(env, t, 1, 0, "a.nr:2:3"); break;
    case 12: (void)neuro_rt_new(env, NEURO_F32, 2, huge, "a.nr:2:3"); break;
    case 13: (void)neuro_abs_i16(env, INT16_MIN, "a.nr:2:3"); break;
    case 14: (void)neuro_rt_reshape(env, t, 1, shape, "a.nr:2:3"); break;
    case 15: (void)neuro_rt_fold_f32(env, NEURO_ALL, t, 1, "a.nr:2:3"); break;
    case 16: (void)neuro_rt_contract(env, t, t, "ab,bc->ac", 1, "a.nr:2:3"); break;
    default:
        neuro_rt_print(&text, 0, 0);
        c->result = t;
        break;
    }
}

static void
test_panics(void)
{
    static const char *const messages[] = {
        "by hand", "some text [[", "integer overflow: 200 + 100 does not fit u8",
        "integer overflow: 9223372036854775807 * -2 does not fit i64", "integer overflow: -(-128) does not fit i8",
        "integer overflow: -2147483648 / -1 does not fit i32", "division by zero", "shift by 32: a shift of i32 is by 0 to 31",
        "position 17 is outside axis 0 of extent 4", "position -1 is outside axis 1 of extent 4", "index 9 is outside an array of 4",
        "GPU(0)", "63 bits", "abs(-32768) does not fit i16", "reshape of [3, 5], which has 15 elements, to [3], which has 3",
        "all of a tensor with elements of type f32", "axis 'b' is 3 here and 5 there"
    };
    for (int i = 0; i < 17; i++) {
        neuro_error err;
        call c;
        memset(&c, 0, sizeof c);
        c.what = i;
        CHECK(neuro_rt_export(panic_body, &c, &err) == NEURO_PANIC);
        CHECK(contains(err.message, messages[i]) && strcmp(err.place, "a.nr:2:3") == 0 && err.code == NEURO_PANIC);
        CHECK(neuro_rt_export(panic_body, &c, NULL) == NEURO_PANIC);
        CHECK(n_live == 0);
    }
}

/* --- integers --- */

static void
test_integers(void)
{
    int8_t s = 0;
    uint32_t u = 0;
    int64_t w = 0;
    CHECK(neuro_overflow_add_i8(127, 1, &s) && s == -128 && neuro_overflow_sub_i8(-128, 1, &s) && s == 127);
    CHECK(neuro_overflow_mul_i8(-128, -1, &s) && s == -128 && !neuro_overflow_mul_i8(-128, 1, &s));
    CHECK(neuro_overflow_mul_u32(65536, 65536, &u) && u == 0 && neuro_overflow_sub_u32(1, 2, &u) && u == UINT32_MAX);
    CHECK(neuro_overflow_mul_i64(INT64_MIN, -1, &w) && !neuro_overflow_mul_i64(INT64_MIN, 1, &w) && w == INT64_MIN);
    CHECK(neuro_wrap_mul_u16(65535, 65535) == 1 && neuro_wrap_neg_i32(INT32_MIN) == INT32_MIN && neuro_wrap_add_i8(100, 100) == -56);
    CHECK(neuro_wrap_shl_i32(1, 33) == 2 && neuro_wrap_shr_i8(-128, 7) == -1 && neuro_wrap_shr_u8(128, 7) == 1);
    CHECK(neuro_sat_add_i8(100, 100) == 127 && neuro_sat_add_i8(-100, -100) == -128 && neuro_sat_sub_u8(1, 2) == 0);
    CHECK(neuro_sat_mul_i32(INT32_MIN, 2) == INT32_MIN && neuro_sat_mul_i32(INT32_MIN, -2) == INT32_MAX && neuro_sat_sub_i8(-100, 100) == -128);
    CHECK(neuro_i8_from_float(1e9) == 127 && neuro_i8_from_float(-1e9) == -128 && neuro_i8_from_float((double)NAN) == 0);
    CHECK(neuro_u8_from_float(-5.0) == 0 && neuro_u8_from_float(254.9) == 254 && neuro_i32_from_float(-2.9) == -2);
    CHECK(neuro_i64_from_float(9.3e18) == INT64_MAX && neuro_u64_from_float(1.8e19) == 18000000000000000000u);
    CHECK(neuro_cast_i8(0x1ff) == -1 && neuro_cast_i16(0x8000) == INT16_MIN && neuro_cast_i64(UINT64_MAX) == -1);
    CHECK(neuro_sign_i8(-3) == -1 && neuro_sign_u8(3) == 1 && neuro_clamp_i32(7, 1, 5) == 5 && neuro_min_u8(3, 4) == 3);
}

static bool
near(double a, double b, double bound)
{
    return fabs(a - b) <= bound * fabs(b) + 1e-300;
}

static void
test_math(void)
{
    CHECK(neuro_max_f32(NAN, 1) == 1 && neuro_max_f32(1, NAN) == 1 && neuro_min_f64(NAN, NAN) != neuro_min_f64(NAN, NAN));
    CHECK(neuro_relu_f32(-1) == 0 && neuro_is_nan_f32(neuro_relu_f32(NAN)) && neuro_sign_f64(-2) == -1 && neuro_sign_f32(0) == 0);
    CHECK(neuro_round_f64(2.5) == 2 && neuro_round_f64(3.5) == 4 && neuro_round_f32(-0.5f) == 0 && neuro_rem_f64(-7, 3) == -1);
    CHECK(near(neuro_gelu_f64(1), 0.8413447460685429, 1e-15) && near(neuro_gelu_f64(-10), -7.619853024160527e-23, 1e-14));
    CHECK(neuro_gelu_f32(-INFINITY) == 0 && neuro_gelu_f32(INFINITY) == INFINITY && neuro_is_nan_f64(neuro_gelu_f64(NAN)));
    CHECK(near(neuro_sigmoid_f64(-700), 9.859676543759770e-305, 1e-12) && neuro_sigmoid_f32(100) == 1);
    CHECK(neuro_silu_f64(-INFINITY) == 0 && near(neuro_silu_f64(1), 0.7310585786300049, 1e-15));
    CHECK(neuro_abs_f32(-0.0f) == 0 && nri_bits_f32(neuro_abs_f32(-0.0f)) == 0 && neuro_clamp_f32(3, 0, 1) == 1);
    CHECK(near(neuro_rsqrt_f64(4), 0.5, 1e-16) && near((double)neuro_erf_f32(0.5f), 0.5204998778130465, 1e-7));
}

/* --- products --- */

/* One product of random layout against plain loops in f64. */
static bool
gemm_agrees(neuro_dtype dtype, int64_t m, int64_t n, int64_t k, int layout)
{
    int64_t a_shape[] = { m, k };
    int64_t b_shape[] = { k, n };
    int64_t a_t[] = { k, m };
    int64_t b_t[] = { n, k };
    const char *letters[] = { "ab,bc->ac", "ba,bc->ac", "ab,cb->ac", "ba,cb->ac", "ab,bc->ca", "ba,cb->ca" };
    bool a_turned = layout == 1 || layout == 3 || layout == 5;
    bool b_turned = layout == 2 || layout == 3 || layout == 5;
    bool out_turned = layout >= 4;
    neuro_tensor *a = make(dtype, 2, a_turned ? a_t : a_shape, NULL);
    neuro_tensor *b = make(dtype, 2, b_turned ? b_t : b_shape, NULL);
    neuro_tensor *c = NULL;
    bool ok = true;
    for (int64_t i = 0; i < m * k; i++) {
        double x = random_unit();
        dtype == NEURO_F32 ? (void)(((float *)neuro_data(a))[i] = (float)x) : (void)(((double *)neuro_data(a))[i] = x);
    }
    for (int64_t i = 0; i < k * n; i++) {
        double x = random_unit();
        dtype == NEURO_F32 ? (void)(((float *)neuro_data(b))[i] = (float)x) : (void)(((double *)neuro_data(b))[i] = x);
    }
    CHECK(neuro_tensor_contract(a, b, letters[layout], &c, NULL) == NEURO_OK);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            double size = 0;
            for (int64_t p = 0; p < k; p++) {
                int64_t ia = a_turned ? p * m + i : i * k + p;
                int64_t ib = b_turned ? j * k + p : p * n + j;
                double x = dtype == NEURO_F32 ? (double)((float *)neuro_data(a))[ia] * (double)((float *)neuro_data(b))[ib]
                                              : ((double *)neuro_data(a))[ia] * ((double *)neuro_data(b))[ib];
                sum += x;
                size += fabs(x);
            }
            int64_t ic = out_turned ? j * m + i : i * n + j;
            double found = dtype == NEURO_F32 ? (double)((float *)neuro_data(c))[ic] : ((double *)neuro_data(c))[ic];
            double eps = dtype == NEURO_F32 ? 1.2e-7 : 2.3e-16;
            ok = ok && fabs(found - sum) <= (double)(k + 1) * eps * size;
        }
    }
    neuro_tensor_release(&a);
    neuro_tensor_release(&b);
    neuro_tensor_release(&c);
    if (!ok) {
        printf("  %s %d x %d x %d layout %d\n", neuro_dtype_name(dtype), (int)m, (int)n, (int)k, layout);
    }
    return ok;
}

static void
test_gemm(void)
{
    static const int64_t sizes[][3] = { { 1, 1, 1 }, { 3, 5, 7 }, { 4, 8, 16 }, { 17, 9, 33 }, { 1, 40, 300 }, { 40, 1, 300 },
                                        { 129, 257, 259 }, { 5, 3, 0 }, { 0, 3, 5 }, { 3, 0, 5 }, { 1, 1, 1000 }, { 67, 31, 131 } };
    for (int i = 0; i < 12; i++) {
        for (int layout = 0; layout < 6; layout++) {
            CHECK(gemm_agrees(NEURO_F32, sizes[i][0], sizes[i][1], sizes[i][2], layout));
            CHECK(gemm_agrees(NEURO_F64, sizes[i][0], sizes[i][1], sizes[i][2], layout));
        }
    }
    for (int i = 0; i < 40; i++) {
        CHECK(gemm_agrees(NEURO_F32, random_below(24), random_below(24), random_below(24), (int)random_below(6)));
    }
    CHECK(n_live == 0 && strcmp(neuro_isa(), nri_isa_choose()->name) == 0);
}

/* Layout never changes the bits of a product. */
static void
test_gemm_layouts(void)
{
    const int64_t shape[] = { 37, 300 };
    const int64_t other[] = { 300, 29 };
    const int turn[] = { 1, 0 };
    neuro_tensor *a = make(NEURO_F32, 2, shape, NULL);
    neuro_tensor *b = make(NEURO_F32, 2, other, NULL);
    neuro_tensor *a_t = NULL;
    neuro_tensor *b_t = NULL;
    neuro_tensor *x = NULL;
    neuro_tensor *y = NULL;
    for (int64_t i = 0; i < neuro_len(a); i++) {
        neuro_data_f32(a)[i] = (float)random_unit();
    }
    for (int64_t i = 0; i < neuro_len(b); i++) {
        neuro_data_f32(b)[i] = (float)random_unit();
    }
    CHECK(neuro_tensor_permute(a, turn, &a_t, NULL) == NEURO_OK && neuro_tensor_permute(b, turn, &b_t, NULL) == NEURO_OK);
    CHECK(neuro_tensor_contract(a, b, "ab,bc->ac", &x, NULL) == NEURO_OK);
    CHECK(neuro_tensor_contract(a_t, b_t, "ba,cb->ac", &y, NULL) == NEURO_OK);
    CHECK(memcmp(neuro_data(x), neuro_data(y), sizeof(float) * 37 * 29) == 0);
    neuro_tensor_release(&a);
    neuro_tensor_release(&b);
    neuro_tensor_release(&a_t);
    neuro_tensor_release(&b_t);
    neuro_tensor_release(&x);
    neuro_tensor_release(&y);
}

/* --- contractions --- */

/* A contraction of i64 tensors against a walk over all letters. Extents: a 2, b 3, c 4, d 5, e 1. */
static bool
contract_agrees(const char *letters)
{
    static const int64_t extents[] = { 2, 3, 4, 5, 1 };
    int64_t shape[3][8];
    int n[3];
    const char *part[3];
    neuro_tensor *t[3] = { NULL, NULL, NULL };
    part[0] = letters;
    part[1] = strchr(letters, ',') + 1;
    part[2] = strstr(letters, "->") + 2;
    for (int i = 0; i < 3; i++) {
        for (n[i] = 0; part[i][n[i]] >= 'a' && part[i][n[i]] <= 'e'; n[i]++) {
            shape[i][n[i]] = extents[part[i][n[i]] - 'a'];
        }
    }
    for (int i = 0; i < 2; i++) {
        t[i] = make(NEURO_I64, n[i], shape[i], NULL);
        for (int64_t j = 0; j < neuro_len(t[i]); j++) {
            neuro_data_i64(t[i])[j] = random_below(19) - 9;
        }
    }
    bool ok = neuro_tensor_contract(t[0], t[1], letters, &t[2], NULL) == NEURO_OK && neuro_tensor_rank(t[2]) == n[2];
    int64_t wanted[2 * 3 * 4 * 5];
    memset(wanted, 0, sizeof wanted);
    for (int at = 0; at < 120 && ok; at++) {
        int64_t digits[5];
        int64_t rest = at;
        int64_t offset[3] = { 0, 0, 0 };
        bool counts = true;
        for (int l = 0; l < 5; l++) {
            digits[l] = rest % extents[l];
            rest /= extents[l];
            bool used = strchr(letters, 'a' + l) != NULL;
            counts = counts && (used || digits[l] == 0);
        }
        for (int i = 0; i < 3; i++) {
            for (int d = 0; d < n[i]; d++) {
                offset[i] = offset[i] * shape[i][d] + digits[part[i][d] - 'a'];
            }
        }
        if (counts) {
            wanted[offset[2]] += neuro_data_i64(t[0])[offset[0]] * neuro_data_i64(t[1])[offset[1]];
        }
    }
    ok = ok && memcmp(wanted, neuro_data(t[2]), sizeof *wanted * (size_t)neuro_len(t[2])) == 0;
    for (int i = 0; i < 3; i++) {
        neuro_tensor_release(&t[i]);
    }
    if (!ok) {
        printf("  %s\n", letters);
    }
    return ok;
}

static bool
contract_fails(const char *letters, neuro_result wanted, const char *message)
{
    const int64_t shape[] = { 2, 3 };
    neuro_error err;
    neuro_tensor *a = make(NEURO_F32, 2, shape, NULL);
    neuro_tensor *out = a;
    neuro_result result = neuro_tensor_contract(a, a, letters, &out, &err);
    bool ok = result == wanted && out == NULL && contains(err.message, message);
    neuro_tensor_release(&a);
    return ok;
}

static void
test_contract(void)
{
    static const char *const all[] = {
        "ab,bc->ac", "ab,bc->ca", "abc,acd->abd", "abc,cbd->bad", "abd,dcb->abc", "abcd,dcba->", "ab,ab->", "ab,ab->ab", "ab,ab->ba",
        "a,b->ab", "a,b->ba", "abc,c->ab", "c,abc->ba", "aab,b->a", "aab,bb->a", "abcd,e->dcba", "abcd,ae->bd", ",ab->ba", "ab,->b",
        ",->", "abc,dce->bead", "cab,dbc->ad", "cb,bd->", "ee,a->a", "abcde,edcba->ace", "dcba,bd->ca"
    };
    for (int i = 0; i < (int)(sizeof all / sizeof all[0]); i++) {
        CHECK(contract_agrees(all[i]));
    }
    CHECK(contract_fails("ab,bc->ac", NEURO_SHAPE_MISMATCH, "axis 'b' is 2 here and 3 there"));
    CHECK(contract_fails("ab,ac->ad", NEURO_INVALID_ARGUMENT, "'d'"));
    CHECK(contract_fails("ab,ab->aa", NEURO_INVALID_ARGUMENT, "'a' is twice"));
    CHECK(contract_fails("abc,ab->a", NEURO_BAD_RANK, "3 letters"));
    CHECK(contract_fails("ab ab->a", NEURO_INVALID_ARGUMENT, "form"));
    CHECK(contract_fails("ab,ab->a1", NEURO_INVALID_ARGUMENT, "form"));
    CHECK(contract_fails("ab,ab->cdefghij", NEURO_INVALID_ARGUMENT, "'c'"));
    CHECK(contract_fails("abcdefghijklmnopqrstuvwxyz,ABCDEFGHIJKLMNOPQRSTUVWXYZ->", NEURO_BAD_RANK, "letters"));
    CHECK(contract_fails("ab,ab->cdefghijk", NEURO_BAD_RANK, "rank 9"));
    CHECK(n_live == 0);
}

static void
test_contract_types(void)
{
    const int64_t n3[] = { 3 };
    const int8_t big[] = { 100, 100, -100 };
    const int8_t ones[] = { 1, 1, 1 };
    neuro_f16 halves[3];
    neuro_tensor *out = NULL;
    neuro_error err;
    neuro_tensor *a = make(NEURO_I8, 1, n3, big);
    neuro_tensor *b = make(NEURO_I8, 1, n3, ones);
    CHECK(neuro_tensor_matmul(a, b, &out, &err) == NEURO_OVERFLOW && contains(err.message, "does not fit i8") && out == NULL);
    nri_heap heap = nri_heap_make(NULL, false);
    nri_view a_view = nri_view_open(a);
    nri_view b_view = nri_view_open(b);
    CHECK(nri_contract_new(&heap, &a_view, &b_view, "a,a->", false, &out, &err) == NEURO_OK && neuro_data_i8(out)[0] == 100);
    neuro_tensor_release(&out);
    neuro_tensor_release(&a);
    neuro_tensor_release(&b);
    for (int i = 0; i < 3; i++) {
        halves[i] = neuro_f16_from_f64(i == 0 ? 2048 : 1);      /* 2048 + 1 + 1: 2050 in f32, 2048 in f16 */
    }
    a = make(NEURO_F16, 1, n3, halves);
    neuro_f16 one[3];
    one[0] = one[1] = one[2] = neuro_f16_from_f64(1);
    b = make(NEURO_F16, 1, n3, one);
    CHECK(neuro_tensor_matmul(a, b, &out, &err) == NEURO_OK && neuro_f32_from_f16(neuro_data_f16(out)[0]) == 2050);
    neuro_tensor_release(&out);
    CHECK(neuro_tensor_contract(a, b, "a,b->", &out, &err) == NEURO_OK && neuro_f32_from_f16(neuro_data_f16(out)[0]) == 6152);
    neuro_tensor_release(&out);
    neuro_tensor_release(&a);
    a = make(NEURO_BOOL, 1, n3, ones);
    CHECK(neuro_tensor_matmul(a, a, &out, &err) == NEURO_BAD_DTYPE && neuro_tensor_matmul(a, b, &out, &err) == NEURO_BAD_DTYPE);
    neuro_tensor_release(&a);
    neuro_tensor_release(&b);
    CHECK(n_live == 0);
}

static void
test_matmul(void)
{
    static const int64_t shapes[][2][3] = { { { 2, 3, 0 }, { 3, 4, 0 } }, { { 3, 0, 0 }, { 3, 4, 0 } }, { { 2, 3, 0 }, { 3, 0, 0 } },
                                            { { 5, 2, 3 }, { 5, 3, 4 } }, { { 5, 2, 3 }, { 3, 4, 0 } }, { { 3, 0, 0 }, { 3, 0, 0 } } };
    static const int ranks[][3] = { { 2, 2, 2 }, { 1, 2, 1 }, { 2, 1, 1 }, { 3, 3, 3 }, { 3, 2, 3 }, { 1, 1, 0 } };
    neuro_error err;
    neuro_tensor *out = NULL;
    for (int i = 0; i < 6; i++) {
        neuro_tensor *a = make(NEURO_F64, ranks[i][0], shapes[i][0], NULL);
        neuro_tensor *b = make(NEURO_F64, ranks[i][1], shapes[i][1], NULL);
        for (int64_t j = 0; j < neuro_len(a); j++) {
            neuro_data_f64(a)[j] = 1;
        }
        for (int64_t j = 0; j < neuro_len(b); j++) {
            neuro_data_f64(b)[j] = 2;
        }
        CHECK(neuro_tensor_matmul(a, b, &out, &err) == NEURO_OK && neuro_tensor_rank(out) == ranks[i][2]);
        CHECK(neuro_data_f64(out)[neuro_len(out) - 1] == 6);
        neuro_tensor_release(&out);
        neuro_tensor_release(&a);
        neuro_tensor_release(&b);
    }
    neuro_tensor *a = make(NEURO_F64, 2, shapes[0][0], NULL);
    CHECK(neuro_tensor_matmul(a, a, &out, &err) == NEURO_SHAPE_MISMATCH && contains(err.message, "[2, 3] and [2, 3]"));
    CHECK(neuro_tensor_matmul(a, NULL, &out, &err) == NEURO_NULL_HANDLE);
    neuro_tensor_release(&a);
    const float left[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    const float right[] = { 9, 8, 7, 6, 5, 4, 3, 2, 1 };
    const float product[] = { 30, 24, 18, 84, 69, 54, 138, 114, 90 };
    const int64_t square[] = { 3, 3 };
    a = make(NEURO_F32, 2, square, left);                       /* field case FC12 */
    neuro_tensor *b = make(NEURO_F32, 2, square, right);
    CHECK(neuro_tensor_matmul(a, b, &out, &err) == NEURO_OK && memcmp(neuro_data(out), product, sizeof product) == 0);
    neuro_tensor_release(&a);
    neuro_tensor_release(&b);
    neuro_tensor_release(&out);
    CHECK(n_live == 0);
}

/* --- reductions --- */

static void
fold_body(neuro_env *env, void *arguments)
{
    call *c = (call *)arguments;
    const neuro_tensor *t = c->given;
    switch (neuro_tensor_dtype(t)) {
    case NEURO_F32: snprintf(c->text, sizeof c->text, "%.9g", (double)neuro_rt_fold_f32(env, c->what, t, 1, "x")); break;
    case NEURO_F64: snprintf(c->text, sizeof c->text, "%.17g", neuro_rt_fold_f64(env, c->what, t, 1, "x")); break;
    case NEURO_F16:
        snprintf(c->text, sizeof c->text, "%g", (double)neuro_f32_from_f16(neuro_rt_fold_f16(env, c->what, t, 1, "x")));
        break;
    case NEURO_I8: snprintf(c->text, sizeof c->text, "%d", neuro_rt_fold_i8(env, c->what, t, 1, "x")); break;
    case NEURO_BOOL: snprintf(c->text, sizeof c->text, "%d", neuro_rt_fold_bool(env, c->what, t, 1, "x")); break;
    default: break;
    }
}

static const char *
fold(neuro_dtype dtype, int reduction, int64_t n, const void *elements)
{
    static call c;
    neuro_error err;
    neuro_tensor *t = make(dtype, 1, &n, elements);
    c.what = reduction;
    c.given = t;
    if (neuro_rt_export(fold_body, &c, &err) != NEURO_OK) {
        snprintf(c.text, sizeof c.text, "%s", err.message);
    }
    neuro_tensor_release(&t);
    return c.text;
}

static bool
is(const char *found, const char *wanted)
{
    return text_is(found, (int)strlen(found), wanted);
}

static void
test_folds(void)
{
    const float nans[] = { NAN, 2, 5, -2, NAN };
    const int8_t ints[] = { 100, -100, 50, 77 };
    const int8_t over[] = { 100, 100, -100 };
    const bool truths[] = { true, true, false };
    const double few[] = { 1.5, 2.5, -4 };
    const float huge[] = { 3e38f, 3e38f, 3e38f };
    neuro_f16 halves[3];
    halves[0] = halves[1] = halves[2] = neuro_f16_from_f64(40000);
    CHECK(is(fold(NEURO_F32, NEURO_MAX, 5, nans), "5") && is(fold(NEURO_F32, NEURO_MIN, 5, nans), "-2"));
    CHECK(contains(fold(NEURO_F32, NEURO_MAX, 1, nans), "nan") && contains(fold(NEURO_F32, NEURO_SUM, 5, nans), "nan"));
    CHECK(is(fold(NEURO_I8, NEURO_SUM, 4, ints), "127") && is(fold(NEURO_I8, NEURO_MIN, 4, ints), "-100"));
    CHECK(is(fold(NEURO_I8, NEURO_MAX, 4, ints), "100") && is(fold(NEURO_I8, NEURO_PROD, 1, ints), "100"));
    CHECK(is(fold(NEURO_I8, NEURO_SUM, 3, over), "integer overflow: a sum does not fit i8"));
    CHECK(is(fold(NEURO_I8, NEURO_PROD, 3, over), "integer overflow: a product does not fit i8"));
    CHECK(is(fold(NEURO_BOOL, NEURO_ALL, 3, truths), "0") && is(fold(NEURO_BOOL, NEURO_ANY, 3, truths), "1"));
    CHECK(is(fold(NEURO_BOOL, NEURO_ALL, 2, truths), "1") && is(fold(NEURO_BOOL, NEURO_ALL, 0, NULL), "1"));
    CHECK(is(fold(NEURO_BOOL, NEURO_ANY, 0, NULL), "0") && is(fold(NEURO_F64, NEURO_SUM, 0, NULL), "0"));
    CHECK(is(fold(NEURO_F64, NEURO_PROD, 0, NULL), "1") && contains(fold(NEURO_F64, NEURO_MEAN, 0, NULL), "nan"));
    CHECK(contains(fold(NEURO_F64, NEURO_MAX, 0, NULL), "max of no elements"));
    CHECK(is(fold(NEURO_F64, NEURO_PROD, 3, few), "-15") && is(fold(NEURO_F64, NEURO_MEAN, 3, few), "0"));
    CHECK(is(fold(NEURO_F32, NEURO_MEAN, 3, huge), "3.00000001e+38") && is(fold(NEURO_F16, NEURO_MEAN, 3, halves), "40000"));
    CHECK(is(fold(NEURO_F16, NEURO_SUM, 3, halves), "inf"));
    CHECK(n_live == 0);
}

/* Pairwise: a long sum of equal floats stays within a few ulp, along every axis, and layouts do not change its bits. */
static void
test_sum_accuracy(void)
{
    const int64_t shape[] = { 200003, 5 };
    const int turn[] = { 1, 0 };
    neuro_tensor *t = make(NEURO_F32, 2, shape, NULL);
    neuro_tensor *turned = NULL;
    neuro_tensor *down = NULL;
    neuro_tensor *across = NULL;
    double exact[5] = { 0, 0, 0, 0, 0 };
    for (int64_t i = 0; i < neuro_len(t); i++) {
        neuro_data_f32(t)[i] = i % 5 == 0 ? 0.1f : (float)random_unit() + 1;
        exact[i % 5] += (double)neuro_data_f32(t)[i];
    }
    CHECK(neuro_tensor_permute(t, turn, &turned, NULL) == NEURO_OK);
    CHECK(neuro_tensor_reduce(t, NEURO_SUM, 1, false, &down, NULL) == NEURO_OK);
    CHECK(neuro_tensor_reduce(turned, NEURO_SUM, 2, false, &across, NULL) == NEURO_OK);
    for (int i = 0; i < 5; i++) {
        CHECK(near((double)neuro_data_f32(down)[i], exact[i], 4 * 1.2e-7));
        CHECK(neuro_data_f32(down)[i] == neuro_data_f32(across)[i]);
    }
    neuro_tensor_release(&t);
    neuro_tensor_release(&turned);
    neuro_tensor_release(&down);
    neuro_tensor_release(&across);
}

/* Every mask of a [2, 3, 4, 5] tensor against a walk over its elements, contiguous and as a permuted borrow. */
static void
test_reduce_masks(void)
{
    const int64_t shape[] = { 2, 3, 4, 5 };
    const int64_t back[] = { 5, 4, 3, 2 };
    const int64_t strides[] = { 1, 5, 20, 60 };
    neuro_tensor *t = make(NEURO_I32, 4, shape, NULL);
    neuro_tensor *flipped = NULL;
    for (int i = 0; i < 120; i++) {
        neuro_data_i32(t)[i] = (int32_t)random_below(100);
    }
    CHECK(neuro_tensor_borrow(NULL, NEURO_I32, 4, back, strides, neuro_data(t), true, &flipped, NULL) == NEURO_OK);
    for (unsigned mask = 0; mask < 16; mask++) {
        int64_t wanted[120];
        memset(wanted, 0, sizeof wanted);
        for (int at = 0; at < 120; at++) {
            int digits[] = { at / 60, at / 20 % 3, at / 5 % 4, at % 5 };
            int64_t place = 0;
            for (int d = 0; d < 4; d++) {
                place = (mask >> d & 1) != 0 ? place : place * shape[d] + digits[d];
            }
            wanted[place] += neuro_data_i32(t)[at];
        }
        neuro_tensor *out = NULL;
        neuro_tensor *kept = NULL;
        CHECK(neuro_tensor_reduce(t, NEURO_SUM, mask, false, &out, NULL) == NEURO_OK);
        CHECK(neuro_tensor_reduce(t, NEURO_SUM, mask, true, &kept, NULL) == NEURO_OK && neuro_tensor_rank(kept) == 4);
        bool same = true;
        for (int64_t i = 0; i < neuro_len(out); i++) {
            same = same && neuro_data_i32(out)[i] == wanted[i] && neuro_data_i32(kept)[i] == wanted[i];
        }
        CHECK(same);
        unsigned mirror = (mask & 1) << 3 | (mask & 2) << 1 | (mask & 4) >> 1 | (mask & 8) >> 3;
        neuro_tensor *other = NULL;
        CHECK(neuro_tensor_reduce(flipped, NEURO_SUM, mirror, false, &other, NULL) == NEURO_OK && neuro_len(other) == neuro_len(out));
        CHECK(neuro_data_i32(other)[0] == neuro_data_i32(out)[0]);
        neuro_tensor_release(&out);
        neuro_tensor_release(&kept);
        neuro_tensor_release(&other);
    }
    neuro_tensor *out = NULL;
    CHECK(neuro_tensor_reduce(t, NEURO_SUM, 16, false, &out, NULL) == NEURO_INVALID_ARGUMENT);
    CHECK(neuro_tensor_reduce(t, NEURO_MEAN, 1, false, &out, NULL) == NEURO_BAD_DTYPE);
    neuro_tensor_release(&t);
    neuro_tensor_release(&flipped);
    CHECK(n_live == 0);
}

static void
arg_body(neuro_env *env, void *arguments)
{
    call *c = (call *)arguments;
    neuro_tensor *rows = neuro_rt_arg(env, 0, c->given, 1, "x");
    neuro_tensor *columns = neuro_rt_arg(env, 1, c->given, 0, "x");
    snprintf(c->text, sizeof c->text, "%d %d | %d %d %d %d %d | %d %d", (int)neuro_data_i64(rows)[0], (int)neuro_data_i64(rows)[1],
             (int)neuro_data_i64(columns)[0], (int)neuro_data_i64(columns)[1], (int)neuro_data_i64(columns)[2],
             (int)neuro_data_i64(columns)[3], (int)neuro_data_i64(columns)[4], (int)neuro_rt_arg_all(env, 0, c->given),
             (int)neuro_rt_arg_all(env, 1, c->given));
    neuro_rt_release(env, &rows);
    neuro_rt_release(env, &columns);
}

static void
test_arg(void)
{
    const int64_t shape[] = { 2, 5 };
    const double elements[] = { NAN, 3, 7, 7, 0, NAN, 3, 8, 6, 8 };
    call c;
    neuro_tensor *t = make(NEURO_F64, 2, shape, elements);
    c.given = t;
    CHECK(neuro_rt_export(arg_body, &c, NULL) == NEURO_OK);
    CHECK(is(c.text, "2 2 | 0 0 0 1 0 | 7 4"));
    neuro_tensor_release(&t);
    CHECK(n_live == 0);
}

/* Every permutation of four axes, every element size. */
static void
test_permute(void)
{
    const int64_t shape[] = { 3, 34, 2, 37 };
    static const neuro_dtype types[] = { NEURO_U8, NEURO_U16, NEURO_U32, NEURO_U64 };
    for (int code = 0; code < 256; code++) {
        int axes[] = { code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 };
        neuro_dtype dtype = types[code % 4];
        size_t size = neuro_dtype_size(dtype);
        neuro_tensor *t = make(dtype, 4, shape, NULL);
        neuro_tensor *p = NULL;
        bool valid = (1 << axes[0] | 1 << axes[1] | 1 << axes[2] | 1 << axes[3]) == 15;
        for (int64_t i = 0; i < neuro_len(t) * (int64_t)size; i++) {
            neuro_data_u8(t)[i] = (uint8_t)random_bits();
        }
        CHECK((neuro_tensor_permute(t, axes, &p, NULL) == NEURO_OK) == valid);
        bool same = true;
        for (int64_t i = 0; valid && i < neuro_len(p); i++) {
            int64_t rest = i;
            int64_t from = 0;
            for (int d = 3; d >= 0; d--) {
                from += rest % neuro_dim(p, d) * neuro_stride(t, axes[d]);
                rest /= neuro_dim(p, d);
            }
            same = same && memcmp(neuro_data_u8(p) + i * (int64_t)size, neuro_data_u8(t) + from * (int64_t)size, size) == 0;
        }
        CHECK(same);
        neuro_tensor_release(&t);
        neuro_tensor_release(&p);
    }
    CHECK(n_live == 0);
}

static void
test_reshape(void)
{
    const int64_t shape[] = { 2, 6 };
    const int64_t other[] = { 3, -1, 2 };
    const int64_t wrong[] = { 5, -1 };
    const int64_t two[] = { -1, -1 };
    const int64_t transposed[] = { 1, 2 };
    const int64_t flat[] = { 12 };
    int32_t elements[12];
    neuro_tensor *b = NULL;
    for (int i = 0; i < 12; i++) {
        elements[i] = i;
    }
    neuro_tensor *t = make(NEURO_I32, 2, shape, elements);
    void *data = neuro_data(t);
    neuro_tensor *before = t;
    CHECK(neuro_tensor_reshape(&t, 2, wrong, NULL) == NEURO_SHAPE_MISMATCH && neuro_tensor_reshape(&t, 2, two, NULL) == NEURO_SHAPE_MISMATCH);
    CHECK(neuro_tensor_reshape(&t, 3, other, NULL) == NEURO_OK && t == before && neuro_data(t) == data && neuro_dim(t, 1) == 2);
    CHECK(neuro_tensor_stride(t, 0) == 4 && neuro_tensor_stride(t, 2) == 1 && neuro_tensor_is_compact(t));
    neuro_tensor_release(&t);
    CHECK(neuro_tensor_borrow(NULL, NEURO_I32, 2, shape, transposed, elements, false, &b, NULL) == NEURO_OK);
    CHECK(!neuro_tensor_is_compact(b) && neuro_tensor_reshape(&b, 1, flat, NULL) == NEURO_OK && neuro_data_i32(b)[1] == 2);
    neuro_tensor_release(&b);
    CHECK(n_live == 0);
}

/* --- handles --- */

static int n_deleted;

static void
count_deletion(neuro_tensor *self)
{
    (void)self;
    n_deleted++;
}

static void
count_old_deletion(DLManagedTensor *self)
{
    (void)self;
    n_deleted++;
}

typedef struct foreign {
    neuro_tensor handle;
    int64_t shape[9];
    int64_t strides[9];
    float data[16];
} foreign;

/* A good handle of f32 [2, 3] over 0, 1, 2 ... made by somebody else. */
static void
foreign_make(foreign *f)
{
    memset(f, 0, sizeof *f);
    f->handle.version.major = 1;
    f->handle.version.minor = 2;
    f->handle.deleter = count_deletion;
    f->handle.dl_tensor.data = f->data;
    f->handle.dl_tensor.device.device_type = kDLCPU;
    f->handle.dl_tensor.ndim = 2;
    f->handle.dl_tensor.dtype.code = kDLFloat;
    f->handle.dl_tensor.dtype.bits = 32;
    f->handle.dl_tensor.dtype.lanes = 1;
    f->handle.dl_tensor.shape = f->shape;
    f->handle.dl_tensor.strides = f->strides;
    f->shape[0] = 2;
    f->shape[1] = 3;
    f->strides[0] = 3;
    f->strides[1] = 1;
    for (int i = 0; i < 16; i++) {
        f->data[i] = (float)i;
    }
}

/* Imports it both ways: the same result and exactly one deletion each. */
static bool
import_gives(foreign *f, neuro_result wanted, const char *shown)
{
    neuro_tensor *t = NULL;
    neuro_error err;
    n_deleted = 0;
    neuro_result result = neuro_tensor_import(NULL, &f->handle, &t, &err);
    bool ok = result == wanted && (result == NEURO_OK) == (n_deleted == 0);
    ok = ok && (wanted != NEURO_OK || shows(t, ".0", shown));
    neuro_tensor_release(&t);
    neuro_tensor_release(&t);
    ok = ok && n_deleted == 1;
    DLManagedTensor old;
    memset(&old, 0, sizeof old);
    old.dl_tensor = f->handle.dl_tensor;
    old.deleter = count_old_deletion;
    result = neuro_tensor_import_unversioned(NULL, &old, &t, &err);
    ok = ok && (wanted == NEURO_BAD_VERSION || result == wanted);
    neuro_tensor_release(&t);
    if (!ok || n_deleted != 2) {
        printf("  found %d: %s; %d deletions\n", (int)result, err.message, n_deleted);
    }
    return ok && n_deleted == 2;
}

/* Field case FC18 and more. */
static void
test_import(void)
{
    foreign f;
    foreign_make(&f);
    CHECK(import_gives(&f, NEURO_OK, "[[0, 1, 2],\n [3, 4, 5]]"));
    f.handle.dl_tensor.strides = NULL;
    CHECK(import_gives(&f, NEURO_OK, "[[0, 1, 2],\n [3, 4, 5]]"));
    foreign_make(&f);
    f.shape[0] = 1;
    f.shape[1] = 4;
    f.strides[0] = 999;
    CHECK(import_gives(&f, NEURO_OK, "[[0, 1, 2, 3]]"));
    foreign_make(&f);
    f.strides[0] = 1;
    f.strides[1] = 2;
    CHECK(import_gives(&f, NEURO_OK, "[[0, 2, 4],\n [1, 3, 5]]"));
    foreign_make(&f);
    f.handle.dl_tensor.byte_offset = 20;
    f.strides[0] = -3;
    f.strides[1] = -1;
    CHECK(import_gives(&f, NEURO_OK, "[[5, 4, 3],\n [2, 1, 0]]"));
    foreign_make(&f);
    f.shape[0] = 0;
    f.handle.dl_tensor.data = NULL;
    CHECK(import_gives(&f, NEURO_OK, "[]"));
    f.shape[1] = 0;
    f.strides[0] = INT64_MIN;
    f.strides[1] = INT64_MAX;
    CHECK(import_gives(&f, NEURO_OK, "[]"));
    foreign_make(&f);
    f.handle.dl_tensor.ndim = 0;
    f.handle.dl_tensor.shape = NULL;
    f.handle.dl_tensor.strides = NULL;
    CHECK(import_gives(&f, NEURO_OK, "0"));
    f.handle.dl_tensor.ndim = 2;
    CHECK(import_gives(&f, NEURO_NULL_SHAPE, ""));
    f.handle.dl_tensor.ndim = -1;
    CHECK(import_gives(&f, NEURO_BAD_RANK, ""));
    f.handle.dl_tensor.ndim = 9;
    CHECK(import_gives(&f, NEURO_BAD_RANK, ""));
    foreign_make(&f);
    f.shape[0] = -1;
    CHECK(import_gives(&f, NEURO_NEGATIVE_EXTENT, ""));
    foreign_make(&f);
    f.handle.dl_tensor.dtype.lanes = 4;
    CHECK(import_gives(&f, NEURO_BAD_LANES, ""));
}

static void
test_import_errors(void)
{
    foreign f;
    neuro_tensor *t = NULL;
    foreign_make(&f);
    f.handle.dl_tensor.dtype.code = 5;
    CHECK(import_gives(&f, NEURO_BAD_DTYPE, ""));
    foreign_make(&f);
    f.handle.version.major = 2;
    CHECK(import_gives(&f, NEURO_BAD_VERSION, ""));
    foreign_make(&f);
    int32_t cuda = 2;
    memcpy(&f.handle.dl_tensor.device.device_type, &cuda, sizeof cuda);
    CHECK(import_gives(&f, NEURO_BAD_DEVICE, ""));
    foreign_make(&f);
    f.handle.dl_tensor.data = (char *)f.data + 2;
    CHECK(import_gives(&f, NEURO_BAD_ALIGNMENT, ""));
    foreign_make(&f);
    f.handle.dl_tensor.byte_offset = 2;
    CHECK(import_gives(&f, NEURO_BAD_OFFSET, ""));
    foreign_make(&f);
    f.handle.dl_tensor.data = NULL;
    CHECK(import_gives(&f, NEURO_NULL_DATA, ""));
    foreign_make(&f);
    f.shape[0] = INT64_MAX / 8;
    CHECK(import_gives(&f, NEURO_TOO_LARGE, ""));
    foreign_make(&f);
    f.strides[0] = INT64_MAX;
    CHECK(import_gives(&f, NEURO_BAD_STRIDES, ""));
    CHECK(neuro_tensor_import(NULL, NULL, &t, NULL) == NEURO_NULL_HANDLE);
    CHECK(neuro_tensor_import_unversioned(NULL, NULL, &t, NULL) == NEURO_NULL_HANDLE);
    foreign_make(&f);
    f.handle.deleter = NULL;
    CHECK(neuro_tensor_import(NULL, &f.handle, &t, NULL) == NEURO_OK);
    neuro_tensor_release(&t);
    CHECK(n_live == 0);
}

/* Field case FC20, and the form before 1.0. */
static void
test_read_only(void)
{
    foreign f;
    neuro_tensor *t = NULL;
    neuro_tensor *copy = NULL;
    DLManagedTensor *old = NULL;
    neuro_error err;
    const int64_t any[] = { -1, -1 };
    foreign_make(&f);
    f.handle.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    CHECK(neuro_tensor_import(NULL, &f.handle, &t, &err) == NEURO_OK && neuro_tensor_is_read_only(t));
    CHECK(neuro_rt_check_argument(t, "x", NEURO_F32, 2, any, 0, &err) == NEURO_OK);
    CHECK(neuro_rt_check_argument(t, "x", NEURO_F32, 2, any, 1, &err) == NEURO_READ_ONLY && contains(err.message, "argument 'x'"));
    CHECK(neuro_tensor_clone(t, &copy, &err) == NEURO_OK && !neuro_tensor_is_read_only(copy));
    CHECK(neuro_tensor_export_unversioned(&t, &old, &err) == NEURO_READ_ONLY && t != NULL && old == NULL);
    CHECK(neuro_tensor_export_unversioned(&copy, &old, &err) == NEURO_OK && copy == NULL && old != NULL);
    CHECK(((float *)old->dl_tensor.data)[5] == 5);
    old->deleter(old);
    neuro_tensor_release(&t);
    CHECK(n_live == 0);
}

static void
test_arguments(void)
{
    foreign f;
    foreign g;
    neuro_error err;
    const int64_t shape[] = { 2, -1 };
    const int64_t wrong[] = { 2, 4 };
    foreign_make(&f);
    foreign_make(&g);
    CHECK(neuro_rt_check_argument(&f.handle, "x", NEURO_F32, 2, shape, 1, &err) == NEURO_OK);
    CHECK(neuro_rt_check_argument(NULL, "x", NEURO_F32, 2, shape, 1, &err) == NEURO_NULL_HANDLE && contains(err.message, "'x'"));
    CHECK(neuro_rt_check_argument(&f.handle, "x", NEURO_F64, 2, shape, 0, &err) == NEURO_BAD_DTYPE && contains(err.message, "expected f64"));
    CHECK(neuro_rt_check_argument(&f.handle, "x", NEURO_F32, 1, shape, 0, &err) == NEURO_BAD_RANK && contains(err.message, "rank 2"));
    CHECK(neuro_rt_check_argument(&f.handle, "x", NEURO_F32, 2, wrong, 0, &err) == NEURO_WRONG_EXTENT);
    CHECK(contains(err.message, "axis 1 has extent 3, expected 4"));
    f.strides[0] = 4;
    CHECK(neuro_rt_check_argument(&f.handle, "x", NEURO_F32, 2, shape, 0, &err) == NEURO_BAD_STRIDES);
    CHECK(contains(err.message, "axis 0 has stride 4, expected 3") && neuro_rt_check_argument(&f.handle, "x", NEURO_F32, 2, shape, 0, NULL) != NEURO_OK);
    foreign_make(&f);
    CHECK(neuro_rt_check_overlap(&f.handle, "x", &g.handle, "y", &err) == NEURO_OK);
    g.handle.dl_tensor.data = f.data;
    g.handle.dl_tensor.byte_offset = 20;
    CHECK(neuro_rt_check_overlap(&f.handle, "x", &g.handle, "y", &err) == NEURO_OVERLAP && contains(err.message, "'y'"));
    g.handle.dl_tensor.byte_offset = 24;
    CHECK(neuro_rt_check_overlap(&f.handle, "x", &g.handle, "y", &err) == NEURO_OK);
    CHECK(neuro_rt_check_extent(&f.handle, "x", 1, 4, "axis 0 of 'y'", &err) == NEURO_SHAPE_MISMATCH && contains(err.message, "axis 0 of 'y'"));
    CHECK(neuro_rt_check_where(false, "H % N == 0", &err) == NEURO_CONSTRAINT && contains(err.message, "H % N == 0"));
}

static void
adopt_body(neuro_env *env, void *arguments)
{
    call *c = (call *)arguments;
    neuro_tensor *mine = neuro_rt_adopt(env, c->adopted, "a.nr:1:1");
    if (c->what == 0) {
        c->result = neuro_rt_clone(env, mine, "a.nr:1:1");
        neuro_rt_release(env, &mine);
    } else if (c->what == 1) {
        c->result = mine;
    } else {
        neuro_rt_release(env, &mine);
        neuro_rt_panic(env, "a.nr:1:1", "late");
    }
}

/* A tensor passed by value: used up, handed on, or left to the caller by a panic. */
static void
test_adopt(void)
{
    foreign f;
    call c;
    foreign_make(&f);
    memset(&c, 0, sizeof c);
    c.adopted = &f.handle;
    n_deleted = 0;
    CHECK(neuro_rt_export(adopt_body, &c, NULL) == NEURO_OK && n_deleted == 1 && shows(c.result, ".0", "[[0, 1, 2],\n [3, 4, 5]]"));
    neuro_tensor_release(&c.result);
    c.what = 1;
    CHECK(neuro_rt_export(adopt_body, &c, NULL) == NEURO_OK && n_deleted == 1 && neuro_data(c.result) == (void *)f.data);
    neuro_tensor_release(&c.result);
    CHECK(n_deleted == 2);
    c.what = 2;
    CHECK(neuro_rt_export(adopt_body, &c, NULL) == NEURO_PANIC && n_deleted == 2);
    CHECK(n_live == 0);
}

static void
test_creation(void)
{
    const int64_t shape[] = { 2, 3 };
    const int64_t negative[] = { 2, -3 };
    const int64_t nine[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const int64_t huge[] = { 0, INT64_MAX / 2, 3 };
    const int64_t large[] = { INT64_MAX / 16 };
    neuro_error err;
    neuro_tensor *t = NULL;
    CHECK(neuro_tensor_zeros(NULL, NEURO_F32, 2, shape, &t, &err) == NEURO_OK && neuro_tensor_len(t) == 6);
    CHECK(((uintptr_t)neuro_tensor_data(t) & 63) == 0 && t->dl_tensor.strides != NULL && t->dl_tensor.byte_offset == 0);
    CHECK(neuro_tensor_check(t, &err) == NEURO_OK && neuro_tensor_dtype(t) == NEURO_F32 && neuro_tensor_dim(t, 7) == 1);
    neuro_tensor_release(&t);
    CHECK(neuro_tensor_zeros(NULL, NEURO_F32, 2, negative, &t, &err) == NEURO_NEGATIVE_EXTENT && t == NULL);
    CHECK(neuro_tensor_zeros(NULL, NEURO_F32, 9, nine, &t, &err) == NEURO_BAD_RANK && contains(err.message, "tensor rank 9 exceeds the limit of 8"));
    CHECK(neuro_tensor_zeros(NULL, NEURO_F32, 3, huge, &t, &err) == NEURO_TOO_LARGE);
    CHECK(neuro_tensor_zeros(NULL, NEURO_F64, 1, large, &t, &err) == NEURO_OUT_OF_MEMORY && contains(err.message, "bytes"));
    CHECK(neuro_tensor_zeros(NULL, NEURO_F64, 1, NULL, &t, &err) == NEURO_NULL_SHAPE);
    CHECK(neuro_tensor_zeros(NULL, NEURO_N_DTYPES, 0, NULL, &t, &err) == NEURO_BAD_DTYPE);
    CHECK(neuro_tensor_from(NULL, NEURO_F32, 2, shape, NULL, &t, &err) == NEURO_NULL_DATA);
    CHECK(neuro_tensor_zeros(NULL, NEURO_F32, 3, huge + 0, &t, NULL) == NEURO_TOO_LARGE);
    CHECK(strcmp(neuro_result_text(NEURO_OK), "fine") == 0 && neuro_result_text((neuro_result)999) != NULL);
    CHECK(neuro_dtype_size(NEURO_BF16) == 2 && strcmp(neuro_dtype_name(NEURO_BOOL), "bool") == 0 && strcmp(neuro_version(), "0.1.0") == 0);
    CHECK(n_live == 0);
}

/* --- files, from memory --- */

typedef struct memory_file {
    const char *bytes;
    size_t len;
    size_t at;
    bool seekable;
    int n_open;
} memory_file;

static void *
memory_open(void *user, const char *path, const char **why)
{
    memory_file *f = (memory_file *)user;
    *why = "No such file or directory";
    f->at = 0;
    f->n_open += strcmp(path, "none.npy") != 0 ? 1 : 0;
    return strcmp(path, "none.npy") == 0 ? NULL : user;
}

static size_t
memory_read(void *user, void *file, void *to, size_t n)
{
    memory_file *f = (memory_file *)file;
    (void)user;
    n = n < f->len - f->at ? n : f->len - f->at;
    memcpy(to, f->bytes + f->at, n);
    f->at += n;
    return n;
}

static int64_t
memory_rest(void *user, void *file)
{
    memory_file *f = (memory_file *)file;
    (void)user;
    return f->seekable ? (int64_t)(f->len - f->at) : -1;
}

static void
memory_close(void *user, void *file)
{
    (void)file;
    ((memory_file *)user)->n_open--;
}

static neuro_result
load(const char *path, const char *bytes, size_t len, neuro_dtype dtype, int rank, const int64_t *shape, neuro_tensor **out,
     neuro_error *err)
{
    static bool seekable;
    memory_file f = { bytes, len, 0, seekable, 0 };
    nri_host host = nri_host_default;
    nri_heap heap = nri_heap_make(NULL, false);
    seekable = !seekable;
    host.user = &f;
    host.open = memory_open;
    host.read = memory_read;
    host.rest = memory_rest;
    host.close = memory_close;
    neuro_result result = nri_npy_load(&heap, &host, path, dtype, rank, shape, out, err);
    CHECK(f.n_open == 0 && (result == NEURO_OK) == (*out != NULL));
    return result;
}

/* A file of a version with a header and data. Returns its length. */
static size_t
npy(char *file, int major, const char *header, const char *data, size_t data_len)
{
    size_t len = strlen(header);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)major;
    file[7] = 0;
    file[8] = (char)(len & 255);
    file[9] = (char)(len >> 8);
    size_t at = 10;
    if (major > 1) {
        file[10] = 0;
        file[11] = 0;
        at = 12;
    }
    memcpy(file + at, header, len);
    memcpy(file + at + len, data, data_len);
    return at + len + data_len;
}

static bool
npy_gives(int major, const char *header, neuro_dtype dtype, const char *message)
{
    static const char data[24] = { 0, 0, (char)0x80, 0x3f, 0, 0, 0, 0x40, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    char file[1024];
    neuro_error err;
    neuro_tensor *t = NULL;
    const int64_t shape[] = { 2, -1 };
    size_t len = npy(file, major, header, data, sizeof data);
    neuro_result result = load("w.npy", file, len, dtype, 2, shape, &t, &err);
    bool ok = result == NEURO_OK ? message == NULL : message != NULL && contains(err.message, message) && contains(err.message, "w.npy");
    if (result == NEURO_OK && dtype == NEURO_F32) {
        ok = ok && neuro_data_f32(t)[0] == 1 && neuro_data_f32(t)[1] == 2;
    }
    if (!ok && result != NEURO_OK) {
        printf("  %s\n", err.message);
    }
    neuro_tensor_release(&t);
    return ok;
}

static void
test_npy(void)
{
    const char *good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n";
    CHECK(npy_gives(1, good, NEURO_F32, NULL) && npy_gives(2, good, NEURO_F32, NULL) && npy_gives(3, good, NEURO_F32, NULL));
    CHECK(npy_gives(1, "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"=f4\"}", NEURO_F32, NULL));
    CHECK(npy_gives(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}", NEURO_F32, NULL));
    CHECK(npy_gives(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 12)}", NEURO_U8, NULL));
    CHECK(npy_gives(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 12)}", NEURO_BOOL, NULL));
    CHECK(npy_gives(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 6)}", NEURO_F16, NULL));
    CHECK(npy_gives(1, "{'descr': '<V2', 'fortran_order': False, 'shape': (2, 6)}", NEURO_BF16, NULL));
    CHECK(npy_gives(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 0)}", NEURO_I64, NULL));
    CHECK(npy_gives(4, good, NEURO_F32, "found 4.0") && npy_gives(1, good, NEURO_F64, "expected elements of type f64, found f32 ('<f4')"));
    CHECK(npy_gives(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}", NEURO_F32, "little-endian"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", NEURO_F32, "Fortran order"));
    CHECK(npy_gives(1, "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3)}", NEURO_F32, "'<c8'"));
    CHECK(npy_gives(1, "{'descr': '<U10', 'fortran_order': False, 'shape': (2, 3)}", NEURO_F32, "'<U10'"));
    CHECK(npy_gives(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}", NEURO_F32, "structured"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}", NEURO_F32, "expected shape [2, ?], found [3, 2]"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", NEURO_F32, "found [6]"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", NEURO_F32, "found []"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}", NEURO_F32, "expected 32 bytes"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4611686018427387904)}", NEURO_F32, "63 bits"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999999999)}", NEURO_F32, "no tuple of extents"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}", NEURO_F32, "no tuple of extents"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3)}", NEURO_F32, "neither True nor False"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'shape': (2, 3)}", NEURO_F32, "without"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'descr': '<f4'}", NEURO_F32, "twice") && npy_gives(1, "{'a': 1}", NEURO_F32, "unknown key"));
    CHECK(npy_gives(1, "[1]", NEURO_F32, "begin with {") && npy_gives(1, "", NEURO_F32, "begin with {"));
    CHECK(npy_gives(1, "{'descr': '<f4' 'fortran_order': False}", NEURO_F32, ", or }"));
    CHECK(npy_gives(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x", NEURO_F32, "after the header"));
    CHECK(n_live == 0);
}

/* Cut anywhere, changed anywhere: a message or a tensor, nothing else. */
static void
test_npy_any_bytes(void)
{
    const char *good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n";
    static const char data[24] = { 0 };
    const int64_t shape[] = { 2, 3 };
    char file[1024];
    neuro_error err;
    neuro_tensor *t = NULL;
    size_t len = npy(file, 1, good, data, sizeof data);
    for (size_t i = 0; i < len; i++) {
        CHECK(load("w.npy", file, i, NEURO_F32, 2, shape, &t, &err) != NEURO_OK);
    }
    CHECK(load("w.npy", file, 0, NEURO_F32, 2, shape, &t, &err) == NEURO_FILE_FORMAT && contains(err.message, "NUMPY"));
    CHECK(load("none.npy", file, len, NEURO_F32, 2, shape, &t, &err) == NEURO_FILE_UNREADABLE && contains(err.message, "No such file"));
    for (int i = 0; i < 20000; i++) {
        char changed[1024];
        memcpy(changed, file, len);
        for (int64_t n = random_below(4); n >= 0; n--) {
            changed[random_below((int64_t)len)] = (char)random_bits();
        }
        neuro_result result = load("w.npy", changed, len, NEURO_F32, -1, NULL, &t, &err);
        n_failed += result == NEURO_OK || err.message[0] != 0 ? 0 : 1;
        neuro_tensor_release(&t);
    }
    CHECK(neuro_npy_load(NULL, "/nowhere/none.npy", NEURO_F32, 2, shape, &t, &err) == NEURO_FILE_UNREADABLE);
    CHECK(contains(err.message, "/nowhere/none.npy") && neuro_npy_load(NULL, NULL, NEURO_F32, 2, shape, &t, &err) == NEURO_INVALID_ARGUMENT);
    CHECK(n_live == 0);
}

/* --- memory that runs out --- */

static neuro_result
work_with_tensors(void)
{
    const int64_t shape[] = { 40, 50 };
    const int64_t flat[] = { 2000 };
    const int turn[] = { 1, 0 };
    size_t len = 0;
    neuro_tensor *a = NULL;
    neuro_tensor *b = NULL;
    neuro_tensor *c = NULL;
    neuro_tensor *d = NULL;
    neuro_tensor *e = NULL;
    DLManagedTensor *old = NULL;
    neuro_error err;
    neuro_result r = neuro_tensor_zeros(NULL, NEURO_F32, 2, shape, &a, &err);
    r = r != NEURO_OK ? r : neuro_tensor_permute(a, turn, &b, &err);
    r = r != NEURO_OK ? r : neuro_tensor_matmul(a, b, &c, &err);
    r = r != NEURO_OK ? r : neuro_tensor_contract(a, b, "ab,cd->d", &d, &err);
    r = r != NEURO_OK ? r : neuro_tensor_reduce(a, NEURO_MEAN, 1, false, &e, &err);
    r = r != NEURO_OK ? r : neuro_tensor_text(a, "", NULL, 0, &len, &err);
    r = r != NEURO_OK ? r : neuro_tensor_reshape(&a, 1, flat, &err);
    r = r != NEURO_OK ? r : neuro_tensor_export_unversioned(&b, &old, &err);
    r = r != NEURO_OK ? r : neuro_tensor_import_unversioned(NULL, old, &b, &err);
    neuro_tensor_release(&a);
    neuro_tensor_release(&b);
    neuro_tensor_release(&c);
    neuro_tensor_release(&d);
    neuro_tensor_release(&e);
    return r;
}

static void
work_body(neuro_env *env, void *arguments)
{
    call *c = (call *)arguments;
    const int64_t shape[] = { 30, 30 };
    neuro_tensor *a = neuro_rt_zeros(env, NEURO_F64, 2, shape, "a.nr:1:1");
    neuro_tensor *b = neuro_rt_contract(env, a, a, "ab,bc->ca", 1, "a.nr:1:1");
    neuro_text text = neuro_rt_text(env);
    neuro_rt_put_tensor(&text, b, "");
    neuro_string s = neuro_rt_finish(&text);
    neuro_string twice = neuro_rt_string_concat(env, &s, &s);
    neuro_rt_string_free(env, &s);
    neuro_rt_string_free(env, &twice);
    neuro_rt_release(env, &a);
    c->result = b;
}

static void
test_failing_allocator(void)
{
    neuro_result r = NEURO_OUT_OF_MEMORY;
    for (long n = 1; r != NEURO_OK && n < 1000; n++) {
        n_allocs = 0;
        fail_at = n;
        r = work_with_tensors();
        CHECK((r == NEURO_OK || r == NEURO_OUT_OF_MEMORY) && n_live == 0);
    }
    CHECK(r == NEURO_OK);
    r = NEURO_PANIC;
    for (long n = 1; r != NEURO_OK && n < 1000; n++) {
        call c;
        neuro_error err;
        memset(&c, 0, sizeof c);
        n_allocs = 0;
        fail_at = n;
        r = neuro_rt_export(work_body, &c, &err);
        CHECK(r == NEURO_OK ? n_live == 1 : r == NEURO_PANIC && n_live == 0 && contains(err.message, "out of memory"));
        neuro_tensor_release(&c.result);
        CHECK(n_live == 0);
    }
    CHECK(r == NEURO_OK);
    fail_at = 0;
}

static void *
own_alloc(size_t bytes, void *user)
{
    *(size_t *)user += bytes;
    return malloc(bytes);
}

static void
own_release(void *ptr, size_t bytes, void *user)
{
    *(size_t *)user -= bytes;
    free(ptr);
}

/* Everything that comes of a tensor lives where the tensor does, and sizes come back as they went out. */
static void
test_own_allocator(void)
{
    size_t in_use = 0;
    neuro_allocator own = { own_alloc, own_release, &in_use };
    const int64_t shape[] = { 70, 70 };
    long before = n_allocs;
    neuro_tensor *a = NULL;
    neuro_tensor *b = NULL;
    size_t len = 0;
    CHECK(neuro_tensor_zeros(&own, NEURO_F64, 2, shape, &a, NULL) == NEURO_OK && in_use > 70 * 70 * 8);
    CHECK(neuro_tensor_matmul(a, a, &b, NULL) == NEURO_OK && neuro_tensor_text(b, "", NULL, 0, &len, NULL) == NEURO_OK);
    neuro_tensor_release(&a);
    neuro_tensor_release(&b);
    CHECK(in_use == 0 && n_allocs == before);
}

int
main(void)
{
    test_float_text();
    test_parse();
    test_text_round_trips();
    test_halves();
    test_specs();
    test_show();
    test_panics();
    test_integers();
    test_math();
    test_gemm();
    test_gemm_layouts();
    test_contract();
    test_contract_types();
    test_matmul();
    test_folds();
    test_sum_accuracy();
    test_reduce_masks();
    test_arg();
    test_permute();
    test_reshape();
    test_creation();
    test_import();
    test_import_errors();
    test_read_only();
    test_arguments();
    test_adopt();
    test_npy();
    test_npy_any_bytes();
    test_failing_allocator();
    test_own_allocator();
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed == 0 ? 0 : 1;
}

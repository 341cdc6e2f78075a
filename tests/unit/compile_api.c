/* The compiler as a library: arguments, results, diagnostics, limits of memory. */
#define NEURO_IMPLEMENTATION
#include "neuro.h"
#include "test.h"
#include <string.h>

static const char right_text[] =
    "struct Layer { w: Tensor<f32, [out: 2, in: 3]>, b: Tensor<f32, [out: 2]> }\n"
    "func apply<N>(l: &Layer, x: &Tensor<f32, [batch: N, in: 3]>) -> Tensor<f32, [batch: N, out: 2]> {\n"
    "    return (x.dot(&l.w, in) + &l.b).relu()\n"
    "}\n"
    "func main() {\n"
    "    val l = Layer { w: Tensor::ones(), b: [0.5, -9.0] }\n"
    "    val x: Tensor<f32, [batch: 2, in: 3]> = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]\n"
    "    println(\"{apply(&l, &x)}\")\n"
    "}\n";
static const char wrong_text[] = "func main() {\n    val x: i32 = true\n    val y: bool = 1\n}\n";

static neuro_result
compile(const char *text, neuro_compilation **out)
{
    neuro_compile_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.text = text;
    return neuro_compile(&desc, out);
}

static void
test_arguments(void)
{
    neuro_compilation *c = (neuro_compilation *)&c;
    neuro_compile_desc desc;
    memset(&desc, 0, sizeof desc);
    CHECK(neuro_compile(&desc, NULL) == NEURO_INVALID_ARGUMENT);
    CHECK(neuro_compile(NULL, &c) == NEURO_INVALID_ARGUMENT && c == NULL);
    CHECK(neuro_compile(&desc, &c) == NEURO_INVALID_ARGUMENT && c == NULL);
    neuro_compilation_free(NULL);
    CHECK(compile("", &c) == NEURO_OK && neuro_diagnostic_count(c) == 0);
    neuro_compilation_free(c);
}

static void
test_right(void)
{
    neuro_compilation *a, *b;
    size_t len;
    CHECK(compile(right_text, &a) == NEURO_OK);
    CHECK(compile(right_text, &b) == NEURO_OK);
    CHECK(neuro_error_count(a) == 0);
    CHECK(strstr(neuro_c_text(a, &len), "#define NEURO_PROGRAM 1\n#include \"neuro.h\"\n") != NULL);
    CHECK(strlen(neuro_c_text(a, NULL)) == len);
    CHECK(strcmp(neuro_c_text(a, NULL), neuro_c_text(b, NULL)) == 0);
    neuro_compilation_free(a);
    neuro_compilation_free(b);
}

/* Exactly text_len bytes are read, though no NUL follows. */
static void
test_text_len(void)
{
    neuro_compile_desc desc;
    neuro_compilation *c;
    char *copy = (char *)malloc(sizeof right_text - 1);
    memcpy(copy, right_text, sizeof right_text - 1);
    memset(&desc, 0, sizeof desc);
    desc.text = copy;
    desc.text_len = sizeof right_text - 1;
    CHECK(neuro_compile(&desc, &c) == NEURO_OK);
    neuro_compilation_free(c);
    free(copy);
}

static void
test_wrong(void)
{
    neuro_compilation *c;
    neuro_diagnostic d;
    size_t len;
    CHECK(compile(wrong_text, &c) == NEURO_PROGRAM_ERROR && c != NULL);
    CHECK(neuro_error_count(c) == 2);
    CHECK(neuro_diagnostic_get(c, 0, &d) == NEURO_OK);
    CHECK(!d.is_warning && d.line == 2 && d.col == 18 && d.end_line == 2 && d.end_col == 22);
    CHECK(strcmp(d.file, "input.nr") == 0 && d.code[0] == 'E' && strlen(d.message) > 0);
    CHECK(neuro_diagnostic_get(c, 2, &d) == NEURO_INVALID_ARGUMENT);
    CHECK(neuro_diagnostic_get(c, -1, &d) == NEURO_INVALID_ARGUMENT);
    CHECK(strncmp(neuro_diagnostic_text(c, 1, NEURO_RENDER_JSON, &len), "{\"severity\":\"error\"", 19) == 0);
    CHECK(strchr(neuro_diagnostic_text(c, 1, NEURO_RENDER_COLOR, NULL), '\033') != NULL);
    CHECK(strchr(neuro_diagnostic_text(c, 1, NEURO_RENDER_PLAIN, NULL), '\033') == NULL);
    CHECK(neuro_diagnostic_text(c, 2, NEURO_RENDER_PLAIN, &len)[0] == '\0' && len == 0);
    CHECK(neuro_c_text(c, &len)[0] == '\0' && len == 0);
    neuro_compilation_free(c);
}

/* --- memory: the N-th allocation fails, for every N --- */

typedef struct failing {
    long left;
    long live;
} failing;

static void *
failing_alloc(size_t n, void *user)
{
    failing *f = (failing *)user;
    if (f->left == 0) {
        return NULL;
    }
    f->left -= 1;
    f->live += 1;
    return malloc(n);
}

static void
failing_release(void *p, size_t n, void *user)
{
    failing *f = (failing *)user;
    (void)n;
    f->live -= p != NULL;
    free(p);
}

static void
test_failing_allocator(void)
{
    neuro_result result = NEURO_OUT_OF_MEMORY;
    for (long n = 0; n < 10000 && result != NEURO_OK; n++) {
        neuro_compile_desc desc;
        neuro_compilation *c;
        failing f;
        f.left = n;
        f.live = 0;
        memset(&desc, 0, sizeof desc);
        desc.text = right_text;
        desc.allocator.alloc = failing_alloc;
        desc.allocator.release = failing_release;
        desc.allocator.user = &f;
        result = neuro_compile(&desc, &c);
        CHECK(result == NEURO_OK || (result == NEURO_OUT_OF_MEMORY && c == NULL));
        neuro_compilation_free(c);
        CHECK(f.live == 0);
    }
    CHECK(result == NEURO_OK);
}

static void
test_memory_limit(void)
{
    neuro_compile_desc desc;
    neuro_compilation *c;
    memset(&desc, 0, sizeof desc);
    desc.text = right_text;
    desc.memory_limit = 1000;
    CHECK(neuro_compile(&desc, &c) == NEURO_OUT_OF_MEMORY && c == NULL);
}

/* --- phases --- */

static double
counting_clock(void *user)
{
    *(double *)user += 1.0;
    return *(double *)user;
}

static void
test_phases(void)
{
    neuro_compile_desc desc;
    neuro_compilation *c;
    double ticks = 0.0;
    double seconds = 0.0;
    memset(&desc, 0, sizeof desc);
    desc.text = right_text;
    desc.clock = counting_clock;
    desc.user = &ticks;
    CHECK(neuro_compile(&desc, &c) == NEURO_OK);
    CHECK(neuro_phase(c, 0, &seconds) != NULL && seconds > 0.0);
    CHECK(neuro_phase(c, 100, &seconds) == NULL);
    neuro_compilation_free(c);
}

int
main(void)
{
    test_arguments();
    test_right();
    test_text_len();
    test_wrong();
    test_failing_allocator();
    test_memory_limit();
    test_phases();
    return test_end();
}

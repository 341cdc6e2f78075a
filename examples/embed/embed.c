/* Neuro inside a C program: the compiler as a library, and tensors.
 *
 *     cc -std=c11 -I. examples/embed/embed.c -o embed -lm && ./embed
 *
 * Neither needs the neuro tool. The compiler takes text and gives text: it opens no file and starts no process. It prints:
 *
//= double.nr becomes C with a main(): yes
//=
//= error[E0416]: the inner extents of [2, 3] @ [4, 5] differ: 3 and 4
//=  --> wrong.nr:2:5
//=   |
//= 2 |     a @ b
//=   |     ^^^^^
//=
//= matmul of an owned and a borrowed tensor:
//= [[22.0000, 28.0000],
//=  [49.0000, 64.0000]]
//= a product that does not fit: a product of shapes [2, 3] and [2, 3]: the inner extents 3 and 2 differ
 */
#define NEURO_IMPLEMENTATION
#include "neuro.h"
#include <stdio.h>
#include <string.h>

/* Compiles a program and shows its diagnostics. owner: neuro_compilation_free. */
static neuro_compilation *
compile(const char *name, const char *text)
{
    neuro_compilation *compilation;
    neuro_compile_desc desc;
    memset(&desc, 0, sizeof desc);              /* zero is the default of every field */
    desc.name = name;
    desc.text = text;
    if (neuro_compile(&desc, &compilation) != NEURO_OK) {
        for (int i = 0; compilation != NULL && i < neuro_diagnostic_count(compilation); i++) {
            printf("%s", neuro_diagnostic_text(compilation, i, NEURO_RENDER_PLAIN, NULL));
        }
    }
    return compilation;
}

static void
use_compiler(void)
{
    neuro_compilation *good = compile("double.nr", "func main() {\n    val t: Tensor<f32, [2]> = [1.0, 2.0]\n    println(\"{t * 2.0}\")\n}\n");
    const char *c_text = neuro_c_text(good, NULL);
    printf("double.nr becomes C with a main(): %s\n\n", strstr(c_text, "main(int argc") != NULL ? "yes" : "no");
    neuro_compilation_free(good);

    neuro_compilation_free(compile("wrong.nr", "func f(a: &Tensor<f32, [2, 3]>, b: &Tensor<f32, [4, 5]>) -> Tensor<f32, [2, 5]> {\n    a @ b\n}\n"));
    printf("\n");
}

/* Stops at the first failure, with the message of the library. */
static void
expect_ok(neuro_result result, const neuro_error *error)
{
    if (result != NEURO_OK) {
        printf("%s: %s\n", neuro_result_text(result), error->message);
        exit(1);
    }
}

static void
use_tensors(void)
{
    static const int64_t shape_a[] = { 2, 3 };
    static const int64_t shape_b[] = { 3, 2 };
    static const float elements[] = { 1, 2, 3, 4, 5, 6 };
    float mine[6] = { 1, 2, 3, 4, 5, 6 };
    neuro_tensor *a, *b, *product, *none;
    neuro_error error;

    /* A tensor of its own memory, and a handle over memory of ours. Both are DLPack handles. */
    expect_ok(neuro_tensor_from(NULL, NEURO_F32, 2, shape_a, elements, &a, &error), &error);
    expect_ok(neuro_tensor_borrow(NULL, NEURO_F32, 2, shape_b, NULL, mine, true, &b, &error), &error);

    expect_ok(neuro_tensor_matmul(a, b, &product, &error), &error);
    printf("matmul of an owned and a borrowed tensor:\n");
    expect_ok(neuro_tensor_print(product, stdout, &error), &error);

    if (neuro_tensor_matmul(a, a, &none, &error) != NEURO_OK) {
        printf("a product that does not fit: %s\n", error.message);
    }
    neuro_tensor_release(&product);
    neuro_tensor_release(&b);                   /* the memory stays ours */
    neuro_tensor_release(&a);
}

int
main(void)
{
    use_compiler();
    use_tensors();
    return 0;
}

/* Writes a Neuro program of about LINES lines to standard output: generate LINES
 *
 * Its functions use what programs are made of: scalar code, structs, enums with match, generic shapes, tensor operations by position
 * and by name, strings. main() calls them all, so that every one is also lowered.
 */
#include <stdio.h>
#include <stdlib.h>

/* 36 lines. */
static void
part(int i)
{
    printf("// Part %d.\n@copy\nstruct Point%d { x: f64, y: f64 }\n\n", i, i);
    printf("impl Point%d {\n    func dot(&self, other: Point%d) -> f64 { self.x * other.x + self.y * other.y }\n}\n\n", i, i);
    printf("enum Shape%d { Dot, Circle(f64), Box { w: f64, h: f64 } }\n\n", i);
    printf("func area%d(s: &Shape%d) -> f64 {\n    match s {\n        Shape%d::Dot => 0.0\n", i, i, i);
    printf("        Shape%d::Circle(r) => 3.14159 * r * r\n        Shape%d::Box { w, h } => w * h\n    }\n}\n\n", i, i);
    printf("func layer%d<In, Out, B>(x: &Tensor<f32, [batch: B, in: In]>, w: &Tensor<f32, [out: Out, in: In]>,\n", i);
    printf("        b: &Tensor<f32, [out: Out]>) -> Tensor<f32, [batch: B, out: Out]> {\n");
    printf("    val h = (x.dot(w, in) + b).relu()\n    return h * %d.0\n}\n\n", i % 7 + 1);
    printf("func sum%d(limit: i32) -> i32 {\n    mut total = 0\n    for i in 0..limit {\n", i);
    printf("        if i %% %d == 0 {\n            total += i\n        } else {\n            total -= 1\n        }\n    }\n    total\n}\n\n",
           i % 5 + 2);
}

/* 9 lines. */
static void
use(int i)
{
    printf("    val p%d = Point%d { x: %d.5, y: 2.0 }\n", i, i, i % 10);
    printf("    check += p%d.dot(p%d) + area%d(&Shape%d::Circle(1.0)) + area%d(&Shape%d::Box { w: 1.0, h: 2.0 })\n", i, i, i, i, i, i);
    printf("    val w%d: Tensor<f32, [out: 3, in: 2]> = Tensor::ones()\n", i);
    printf("    val x%d: Tensor<f32, [batch: 4, in: 2]> = Tensor::full(0.5)\n", i);
    printf("    val b%d = Tensor::<f32, [out: 3]>::zeros()\n", i);
    printf("    val y%d = layer%d(&x%d, &w%d, &b%d)\n", i, i, i, i, i);
    printf("    check += y%d.sum() as f64 + y%d[0, 0] as f64 + sum%d(100) as f64\n", i, i, i);
    printf("    if check < -1000000000.0 {\n        println(\"{check} at %d\")\n    }\n", i);
}

int
main(int argc, char **argv)
{
    int lines = argc > 1 ? atoi(argv[1]) : 10000;
    int parts = lines / 49 > 0 ? lines / 49 : 1;
    for (int i = 0; i < parts; i++) {
        part(i);
    }
    for (int i = 0; i < parts; i += 8) {
        printf("func use%d(start: f64) -> f64 {\n    mut check = start\n", i);
        for (int k = i; k < i + 8 && k < parts; k++) {
            use(k);
        }
        printf("    check\n}\n\n");
    }
    printf("func main() {\n    mut check = 0.0\n");
    for (int i = 0; i < parts; i += 8) {
        printf("    check = use%d(check)\n", i);
    }
    printf("    println(\"{check}\")\n}\n");
    return 0;
}

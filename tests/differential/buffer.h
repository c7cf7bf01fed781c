/* Memory with a guard on both sides, and its elements as numbers. */
#ifndef GRT_TESTS_DIFFERENTIAL_BUFFER_H
#define GRT_TESTS_DIFFERENTIAL_BUFFER_H

#include <graphrt/graphrt.h>

/* Between guards; ends the program where there is no memory. */
void *guarded(size_t bytes);
bool guards_hold(const void *data, size_t bytes);
/* What guarded() gave; NULL does nothing. */
void release(void *data);

bool is_float(grt_dtype dtype);
/* Of the dtypes that cases are drawn with. 16-bit floats are cut, not rounded. */
double element(const grt_tensor *t, int64_t i);
void set_element(const grt_tensor *t, int64_t i, double v);

#endif

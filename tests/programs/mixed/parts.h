#ifdef __cplusplus
extern "C" {
#endif
int sum_in_c(const int *class_, int n);
#ifdef __cplusplus
}
int sum_in_cpp(const int *a, int n);
#endif

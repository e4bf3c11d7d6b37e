#ifdef __cplusplus
extern "C" {
#endif
float* filled(int n, float value);
void finish(float* device, int n);
int devices(void);
#ifdef __cplusplus
}
#endif

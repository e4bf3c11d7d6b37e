// The command lines of NVIDIA's samples: `-name`, `--name` and `-name=value`, in any case.
#pragma once
#include <strings.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2  // the status of a sample that cannot run here
#endif
#define STRCASECMP strcasecmp
#define STRNCASECMP strncasecmp
#define STRCPY(to, size, from) strcpy(to, from)
#define FOPEN(file, name, mode) (file = fopen(name, mode))
#define FOPEN_FAIL(result) (result == nullptr)
#define SSCANF sscanf
#define SPRINTF sprintf

// How many of these characters a text begins with; 0 if at most one other follows.
inline int stringRemoveDelimiter(char delimiter, const char* string) {
    int count = 0;
    while (string[count] == delimiter) ++count;
    return count + 1 < (int)strlen(string) ? count : 0;
}

namespace cudalab_samples {
// What stands behind an option's name: "" for a flag; null if it is not there.
inline const char* value_of(int argc, const char** argv, const char* option) {
    const size_t length = strcspn(option, "=");
    for (int i = 1; i < argc; ++i) {
        if (argv[i][0] != '-') continue;
        const char* name = argv[i] + stringRemoveDelimiter('-', argv[i]);
        if (strcspn(name, "=") != length || strncasecmp(name, option, length) != 0) continue;
        return name[length] ? name + length + 1 : name + length;
    }
    return nullptr;
}
}  // namespace cudalab_samples

inline int getFileExtension(char* filename, char** extension) {
    char* const dot = strrchr(filename, '.');
    *extension = dot ? dot + 1 : filename + strlen(filename);
    return (int)(*extension - filename);
}

inline bool checkCmdLineFlag(const int argc, const char** argv, const char* string_ref) {
    return cudalab_samples::value_of(argc, argv, string_ref) != nullptr;
}

template <class T>
inline bool getCmdLineArgumentValue(const int argc, const char** argv, const char* string_ref,
                                    T* value) {
    const char* const text = cudalab_samples::value_of(argc, argv, string_ref);
    if (text) *value = (T)atoi(text);  // whatever T is
    return text != nullptr;
}

inline int getCmdLineArgumentInt(const int argc, const char** argv, const char* string_ref) {
    const char* const text = cudalab_samples::value_of(argc, argv, string_ref);
    return text ? atoi(text) : 0;
}

inline float getCmdLineArgumentFloat(const int argc, const char** argv, const char* string_ref) {
    const char* const text = cudalab_samples::value_of(argc, argv, string_ref);
    return text ? (float)atof(text) : 0.f;
}

inline bool getCmdLineArgumentString(const int argc, const char** argv, const char* string_ref,
                                     char** string_retval) {
    *string_retval = (char*)cudalab_samples::value_of(argc, argv, string_ref);
    return *string_retval != nullptr;
}

// The path of a data file, here or in a folder `data` here or above; null if there is none.
inline char* sdkFindFilePath(const char* filename, const char* executable_path) {
    std::string program = executable_path ? executable_path : "";
    program = program.substr(program.find_last_of('/') + 1);
    for (std::string above : {"", "../", "../../", "../../../"}) {
        for (std::string folder : {std::string(), std::string("data/"), program + "/data/"}) {
            const std::string path = above + folder + filename;
            if (FILE* const file = fopen(path.c_str(), "rb")) {
                fclose(file);
                return strdup(path.c_str());
            }
        }
    }
    printf("\nerror: sdkFindFilePath: file <%s> not found!\n", filename);
    return nullptr;
}

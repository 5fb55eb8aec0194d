# For what is given to others, portable wheels and GPU backends. CMake includes it where the first project begins.
# It lies in the patched tree as slipstream/release.cmake.

if (MSVC)
    return()
endif()

# __FILE__ tells where something failed: the file in the tree, not the folder of whoever built it.
get_filename_component(tree ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
foreach (folder ${tree} ${CMAKE_BINARY_DIR})
    add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${folder}/=>")
endforeach()

# What nothing calls goes, shaders among it. Only the linker hides names: if the compiler knew, it would inline more, and
# join other multiplications and additions.
if (CMAKE_SYSTEM_NAME STREQUAL "Linux")
    add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffunction-sections;-fdata-sections>")
    add_link_options(-Wl,--gc-sections)
    file(WRITE ${CMAKE_BINARY_DIR}/backend.map "{ global: ggml_backend_*; local: *; };\n")
    function(hide_names_of_backends)
        foreach (backend ${GGML_AVAILABLE_BACKENDS})
            get_target_property(type ${backend} TYPE)
            if (type STREQUAL MODULE_LIBRARY)
                target_link_options(${backend} PRIVATE -Wl,--version-script=${CMAKE_BINARY_DIR}/backend.map)
            endif()
        endforeach()
    endfunction()
    cmake_language(DEFER CALL hide_names_of_backends)
endif()

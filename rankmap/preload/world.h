/* SPDX-License-Identifier: Apache-2.0 */
/* The other calls that name a communicator: MPI_COMM_WORLD is replaced in them where its ranks are
 * reordered, and some tell that the program knows a reordered communicator's ranks. Included once
 * for the MPI_ names and once for the PMPI_ names. */
#define NAMES(name, params, args)                                                              \
    CALL(NAME(name)) params                                                               \
    {                                                                                          \
        c = ON(c, NOBODY);                                                                     \
        return REAL(NAME(name)) args;                                                          \
    }
#define ASKS(name, params, args)                                                               \
    CALL(NAME(name)) params                                                               \
    {                                                                                          \
        c = ON(c, NOBODY);                                                                     \
        note_asked(c);                                                                         \
        return REAL(NAME(name)) args;                                                          \
    }

/* A program that looks for messages again and again waits for them: that is time in MPI. */
CALL(NAME(MPI_Iprobe))(int from, int tag, MPI_Comm c, int *flag, MPI_Status *s)
{
    c = ON(c, from);
    return PASS(NAME(MPI_Iprobe), (from, tag, c, flag, s));
}

NAMES(MPI_Pack, (const void *b, int n, MPI_Datatype t, void *to, int room, int *at, MPI_Comm c),
      (b, n, t, to, room, at, c))
NAMES(MPI_Unpack, (const void *b, int room, int *at, void *to, int n, MPI_Datatype t, MPI_Comm c),
      (b, room, at, to, n, t, c))
NAMES(MPI_Pack_size, (int n, MPI_Datatype t, MPI_Comm c, int *size), (n, t, c, size))

ASKS(MPI_Comm_rank, (MPI_Comm c, int *rank), (c, rank))
ASKS(MPI_Comm_group, (MPI_Comm c, MPI_Group *group), (c, group))
ASKS(MPI_Comm_dup, (MPI_Comm c, MPI_Comm *made), (c, made))
ASKS(MPI_Comm_dup_with_info, (MPI_Comm c, MPI_Info info, MPI_Comm *made), (c, info, made))
ASKS(MPI_Comm_idup, (MPI_Comm c, MPI_Comm *made, MPI_Request *r), (c, made, r))
ASKS(MPI_Comm_create, (MPI_Comm c, MPI_Group group, MPI_Comm *made), (c, group, made))
ASKS(MPI_Comm_create_group, (MPI_Comm c, MPI_Group group, int tag, MPI_Comm *made), (c, group, tag, made))
ASKS(MPI_Comm_split, (MPI_Comm c, int colour, int key, MPI_Comm *made), (c, colour, key, made))
ASKS(MPI_Comm_split_type, (MPI_Comm c, int type, int key, MPI_Info info, MPI_Comm *made),
     (c, type, key, info, made))
ASKS(MPI_Cart_sub, (MPI_Comm c, const int keep[], MPI_Comm *made), (c, keep, made))
ASKS(MPI_Cart_get, (MPI_Comm c, int most, int dims[], int periods[], int at[]), (c, most, dims, periods, at))
NAMES(MPI_Comm_size, (MPI_Comm c, int *size), (c, size))
NAMES(MPI_Comm_test_inter, (MPI_Comm c, int *flag), (c, flag))
NAMES(MPI_Comm_set_attr, (MPI_Comm c, int key, void *value), (c, key, value))
NAMES(MPI_Comm_delete_attr, (MPI_Comm c, int key), (c, key))
NAMES(MPI_Comm_set_info, (MPI_Comm c, MPI_Info info), (c, info))
NAMES(MPI_Comm_get_info, (MPI_Comm c, MPI_Info *info), (c, info))
NAMES(MPI_Comm_set_name, (MPI_Comm c, const char *text), (c, text))
NAMES(MPI_Comm_get_name, (MPI_Comm c, char *text, int *length), (c, text, length))
NAMES(MPI_Comm_get_errhandler, (MPI_Comm c, MPI_Errhandler *handler), (c, handler))
NAMES(MPI_Comm_call_errhandler, (MPI_Comm c, int code), (c, code))
NAMES(MPI_Topo_test, (MPI_Comm c, int *shape), (c, shape))
NAMES(MPI_Cart_map, (MPI_Comm c, int many, const int dims[], const int periods[], int *rank),
      (c, many, dims, periods, rank))
NAMES(MPI_Graph_map, (MPI_Comm c, int many, const int index[], const int edges[], int *rank),
      (c, many, index, edges, rank))
NAMES(MPI_Comm_spawn, (const char *command, char *words[], int many, MPI_Info info, int root, MPI_Comm c,
                       MPI_Comm *made, int codes[]), (command, words, many, info, root, c, made, codes))
NAMES(MPI_Comm_spawn_multiple, (int count, char *commands[], char **words[], const int many[],
                                const MPI_Info infos[], int root, MPI_Comm c, MPI_Comm *made, int codes[]),
      (count, commands, words, many, infos, root, c, made, codes))
NAMES(MPI_Comm_accept, (const char *port, MPI_Info info, int root, MPI_Comm c, MPI_Comm *made),
      (port, info, root, c, made))
NAMES(MPI_Comm_connect, (const char *port, MPI_Info info, int root, MPI_Comm c, MPI_Comm *made),
      (port, info, root, c, made))
NAMES(MPI_File_open, (MPI_Comm c, const char *path, int mode, MPI_Info info, MPI_File *file),
      (c, path, mode, info, file))
NAMES(MPI_Win_create, (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm c, MPI_Win *win),
      (base, size, unit, info, c, win))
NAMES(MPI_Win_allocate, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm c, void *base, MPI_Win *win),
      (size, unit, info, c, base, win))
NAMES(MPI_Win_allocate_shared, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm c, void *base, MPI_Win *win),
      (size, unit, info, c, base, win))
NAMES(MPI_Win_create_dynamic, (MPI_Info info, MPI_Comm c, MPI_Win *win), (info, c, win))
NAMES(MPI_Attr_put, (MPI_Comm c, int key, void *value), (c, key, value))
NAMES(MPI_Attr_delete, (MPI_Comm c, int key), (c, key))
#ifdef NIDMAP_MPI_4_CALLS
NAMES(MPI_Comm_idup_with_info, (MPI_Comm c, MPI_Info info, MPI_Comm *made, MPI_Request *r), (c, info, made, r))
#endif
#ifdef NIDMAP_LARGE_COUNTS
NAMES(MPI_Pack_c, (const void *b, MPI_Count n, MPI_Datatype t, void *to, MPI_Count room, MPI_Count *at,
                   MPI_Comm c), (b, n, t, to, room, at, c))
NAMES(MPI_Unpack_c, (const void *b, MPI_Count room, MPI_Count *at, void *to, MPI_Count n, MPI_Datatype t,
                     MPI_Comm c), (b, room, at, to, n, t, c))
NAMES(MPI_Pack_size_c, (MPI_Count n, MPI_Datatype t, MPI_Comm c, MPI_Count *size), (n, t, c, size))
NAMES(MPI_Win_create_c, (void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm c, MPI_Win *win),
      (base, size, unit, info, c, win))
NAMES(MPI_Win_allocate_c, (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm c, void *base, MPI_Win *win),
      (size, unit, info, c, base, win))
NAMES(MPI_Win_allocate_shared_c, (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm c, void *base,
                                  MPI_Win *win), (size, unit, info, c, base, win))
#endif

CALL(NAME(MPI_Comm_compare))(MPI_Comm one, MPI_Comm two, int *found)
{
    MPI_Comm c = ON(one, NOBODY), d = ON(two, NOBODY);
    return REAL(NAME(MPI_Comm_compare))(c, d, found);
}

CALL(NAME(MPI_Intercomm_create))(MPI_Comm local, int leader, MPI_Comm peers, int remote, int tag,
                                      MPI_Comm *made)
{
    MPI_Comm c = ON(local, NOBODY), d = ON(peers, NOBODY);
    return REAL(NAME(MPI_Intercomm_create))(c, leader, d, remote, tag, made);
}

/* What MPI itself attaches stands at its own MPI_COMM_WORLD. */
#define GETS_ATTRIBUTE(name)                                                                   \
    CALL(NAME(name))(MPI_Comm c, int key, void *value, int *flag)                         \
    {                                                                                          \
        int its_own = key == MPI_TAG_UB || key == MPI_IO || key == MPI_WTIME_IS_GLOBAL ||      \
                      key == MPI_UNIVERSE_SIZE || key == MPI_LASTUSEDCODE || key == MPI_APPNUM; \
        c = its_own ? c : ON(c, NOBODY);                                                       \
        return REAL(NAME(name))(c, key, value, flag);                                          \
    }
GETS_ATTRIBUTE(MPI_Comm_get_attr)
GETS_ATTRIBUTE(MPI_Attr_get)
#undef GETS_ATTRIBUTE

/* Errors that belong to no communicator go to that of MPI's own MPI_COMM_WORLD. */
#define SETS_HANDLER(name)                                                                     \
    CALL(NAME(name))(MPI_Comm c, MPI_Errhandler handler)                                  \
    {                                                                                          \
        MPI_Comm meant = ON(c, NOBODY);                                                        \
        if (meant != c)                                                                        \
            REAL(NAME(name))(c, handler);                                                      \
        return REAL(NAME(name))(meant, handler);                                               \
    }
SETS_HANDLER(MPI_Comm_set_errhandler)
#if !defined(OPEN_MPI) && !defined(MPI_ABI_VERSION)
NAMES(MPI_Errhandler_get, (MPI_Comm c, MPI_Errhandler *handler), (c, handler))
SETS_HANDLER(MPI_Errhandler_set)
#endif
#undef SETS_HANDLER

/* The coordinates of our own rank: of the one in this communicator, or of the one before. */
CALL(NAME(MPI_Cart_coords))(MPI_Comm c, int rank, int most, int at[])
{
    struct topology *t = ordering.latest;
    if (t && c == t->comm && !inside) {
        if (rank == t->old && rank != t->rank && !t->asked && !t->found)
            say_mixed(t, "asks a reordered communicator for the coordinates of the rank it had before", SITE);
        t->asked |= rank == t->rank;
    }
    return REAL(NAME(MPI_Cart_coords))(c, rank, most, at);
}

#define PLACES(name, buffer)                                                                   \
    CALL(NAME(name))(MPI_File file, MPI_Offset at, buffer b, int n, MPI_Datatype t, MPI_Status *s) \
    {                                                                                          \
        if (ordering.latest)                                                                   \
            watch_offset(at, bytes_of((uint64_t)n, t), SITE);                                  \
        return REAL(NAME(name))(file, at, b, n, t, s);                                         \
    }
PLACES(MPI_File_write_at, const void *)
PLACES(MPI_File_write_at_all, const void *)
PLACES(MPI_File_read_at, void *)
PLACES(MPI_File_read_at_all, void *)
#undef PLACES
#undef NAMES
#undef ASKS

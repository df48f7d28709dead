"""The key of each item, as one or more words of whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placement.errors import UsageError, printable
from placement.support.array_types import Array

Word = NDArray[Any]
Key = str | Sequence[str] | Array | Callable[[Array], ArrayLike] | None

__all__ = ["Fields", "checked_items", "fields_of", "key_words", "words_of"]

#: The fields that are the key, most significant first; () where the items are the keys.
Fields = tuple[str, ...]


def checked_items(items: ArrayLike) -> Array:
    """Return the items as a C-contiguous array with one item a row.

    Raises
    ------
    UsageError
        Where they are objects (pointers mean nothing on another rank), empty
        in bytes, or no array of rows.
    """
    given = np.asarray(items)
    if given.dtype.hasobject:
        raise UsageError(
            f"items of dtype {given.dtype} hold Python objects, which cannot be sent",
            "give a plain or structured dtype",
        )
    if given.ndim == 0:
        raise UsageError("items are one value, not an array of rows")
    if given.dtype.itemsize * int(np.prod(given.shape[1:])) == 0:
        raise UsageError(f"items of dtype {given.dtype} and shape {given.shape} have no bytes")
    return np.ascontiguousarray(given)


def fields_of(items: Array, key: Key) -> Fields | None:
    """Return the fields of the items that are the key, None where it is apart from them.

    Without a key, whole numbers are their own keys, and a structured dtype
    whose fields are all whole numbers is a key of as many words (two of 64
    bits are a 128-bit key), the first field being the most significant.

    Raises
    ------
    UsageError
        Where a field is not there, or a key is needed.
    """
    if key is None:
        return _own_fields(items)
    names = (key,) if isinstance(key, str) else key
    if callable(names) or isinstance(names, np.ndarray):
        return None
    if isinstance(names, (tuple, list)) and names and all(isinstance(n, str) for n in names):
        return _named_fields(items, tuple(names))
    if isinstance(names, (tuple, list)) and len(names) == len(items):
        return None
    raise UsageError(
        f"key is of type {type(key).__name__}", "a field, fields, an array or a function"
    )


def _own_fields(items: Array) -> Fields:
    if items.dtype.names is None:
        if items.ndim > 1:
            hint = "give key= an array or a function"
            raise UsageError(f"items of shape {items.shape} have no key", hint)
        return ()
    kinds = [items.dtype[name] for name in items.dtype.names]
    if not all(kind.kind in "iu" and kind.shape == () for kind in kinds):
        hint = "give key= the field's name"
        raise UsageError(f"items of dtype {_short(items.dtype)} have no key", hint)
    return items.dtype.names


def _named_fields(items: Array, names: Fields) -> Fields:
    """Return the fields of these names; one that is itself a pair stands for its parts."""
    known = items.dtype.names
    for name in names:
        if known is None:
            raise UsageError(f"key {name!r}: items of dtype {items.dtype} have no fields")
        if name not in known:
            raise UsageError(f"items have no field {name!r}", f"they have {', '.join(known)}")
    inner = items.dtype[names[0]].names
    return tuple(f"{names[0]}\0{name}" for name in inner) if len(names) == 1 and inner else names


def words_of(items: Array, fields: Fields) -> list[Word]:
    """Return the key words of items as views of their fields (see `fields_of`)."""
    if not fields:
        return [items]
    split = [name.partition("\0") for name in fields]
    return [items[name][inner] if inner else items[name] for name, _, inner in split]


def key_words(items: Array, key: Key) -> tuple[list[Word], Fields | None]:
    """Return the key words of items, most significant first, and the fields they are.

    Parameters
    ----------
    items : (n, ...)
    key : str, sequence of str, array, callable or None
        See `workloads.sort.mpsort`.

    Returns
    -------
    list of integer arrays (n,)
        Views of the items, or in native byte order where they are apart.
    tuple of str or None
        See `fields_of`.

    Raises
    ------
    UsageError
        Where keys are not whole numbers of 8 to 64 bits, or not one an item.

    Examples
    --------
    >>> pairs = np.zeros(3, [("hi", "u8"), ("lo", "u8")])
    >>> [word.dtype.str for word in key_words(pairs, None)[0]]
    ['<u8', '<u8']
    """
    fields = fields_of(items, key)
    if fields is not None:
        return [_whole(word) for word in words_of(items, fields)], fields
    made = np.asarray(_call_key(key, items) if callable(key) else key)
    if made.shape[:1] != (len(items),) or made.ndim > 2:
        raise UsageError(f"{len(items)} items have keys of shape {made.shape}", "one key an item")
    words = list(made.T) if made.ndim == 2 else words_of(made, _own_fields(made))
    return [_whole(w).astype(w.dtype.newbyteorder("="), copy=False) for w in words], None


def _call_key(key: Callable[[Array], ArrayLike], items: Array) -> ArrayLike:
    try:
        return key(items)
    except Exception as error:
        said = printable(f"{type(error).__name__}: {error}", 120)
        raise UsageError(f"the key function failed on {len(items)} items ({said})") from error


def _whole(word: Word) -> Word:
    """Return a key word as it is; anything but whole numbers is refused."""
    if word.dtype.kind in "iu" and word.ndim == 1 and word.dtype.itemsize <= 8:
        return word
    nan = ", NaN among them" if word.dtype.kind in "fc" and np.isnan(word).any() else ""
    shape = f" of shape {word.shape}" if word.ndim != 1 else ""
    raise UsageError(
        f"keys are {_short(word.dtype)}{shape}{nan}, not whole numbers of 8 to 64 bits",
        "name the key's field, or give key= a function that makes whole numbers",
    )


def _short(dtype: np.dtype[Any]) -> str:
    text = str(dtype)
    return text if len(text) < 60 else text[:57] + "…"

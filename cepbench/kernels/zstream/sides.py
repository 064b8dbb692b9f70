"""Matches of several branches, told apart by the sides that their events have."""

from __future__ import annotations

from cepbench.kernels.jit import njit_in_place


@njit_in_place
def split(found, shifts, branch_of, targets, ends, at, positions):
    """Sort matches by their branch, in order within each.

    Parameters
    ----------
    found : int64 array, shape (places, n)
        Positions, with sides in their last bits.
    shifts : int64 array, shape (places,)
        How many bits these are.
    branch_of : int64 array
        The number of the branch for the sides of all places, one behind the other.
    targets : int64 array, shape (n,)
        Working space.
    ends : int64 array, shape (branches + 1,)
        All zero; written in place: where the matches of each branch begin, and n.
    at : int64 array, shape (branches,)
        Working space.
    positions : int64 array, shape (places, n)
        Written in place.
    """
    targets[:] = 0
    for place in range(len(shifts)):
        bits = shifts[place]
        if bits:
            for match in range(found.shape[1]):
                side = found[place, match] & ((1 << bits) - 1)
                targets[match] = (targets[match] << bits) | side
    for match in range(found.shape[1]):
        number = branch_of[targets[match]]
        targets[match] = number
        ends[number + 1] += 1
    for number in range(len(at)):
        ends[number + 1] += ends[number]
        at[number] = ends[number]
    for match in range(found.shape[1]):
        number = targets[match]
        targets[match] = at[number]
        at[number] += 1
    for place in range(len(shifts)):
        bits = shifts[place]
        for match in range(found.shape[1]):
            positions[place, targets[match]] = found[place, match] >> bits

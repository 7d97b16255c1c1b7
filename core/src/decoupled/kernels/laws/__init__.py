"""Laws: two distributions over arms, given estimates and two rates. See `kernels.compose`."""

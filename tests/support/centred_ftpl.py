"""FTPL with centred losses, two rates and the hard gate. Ladder() is this from 4,096 arms on."""

import decoupled as dc

CENTRED_FTPL = dc.FTPL(
    c=0.5, ranking="auto", estimator="centred", c_exploit=3.0, lam=0.1, schedule="losses"
)

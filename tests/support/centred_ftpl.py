"""FTPL with centred losses, two rates and the hard gate. Ladder() is this from 4,096 arms on."""

import decoupled as dc

CENTRED_FTPL = dc.CentredFTPL(c=0.5, exploit_c=3.0, mean_rate=0.1, schedule="losses")

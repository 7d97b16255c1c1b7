# What the package exports, for type checkers and at run time: see base/lazy.py.
from .client import URL as URL
from .client import AuditAction as AuditAction
from .client import AuditLimit as AuditLimit
from .client import AuditSubject as AuditSubject
from .client import AuditTenant as AuditTenant
from .client import Experiment as Experiment
from .client import KeyFile as KeyFile
from .client import Url as Url
from .client import connected as connected
from .shared import aligned as aligned
from .shared import flag as flag
from .shared import report_errors as report_errors
from .shared import with_parameters_of as with_parameters_of

def run() -> None: ...
def main() -> None: ...

ELSEWHERE: dict[str, tuple[str, ...]]
EXTRAS: dict[str, str]

"""A check of one's own: a function that is given the answer and the run as far as it has come.

Its module is looked for in the working directory, so this is for the root of the repository:

    'convergence.checks.documented={type: python, required: false, value: "examples.checks.own_checks:is_documented"}'
"""

import ast

from aeon.checks import CheckContext, CheckResult


def is_documented(answer: str, context: CheckContext) -> CheckResult:
    """Every function of the answer's first code block has a docstring."""
    code = answer.partition("```python\n")[2].partition("```")[0]
    functions = [each for each in ast.walk(ast.parse(code)) if isinstance(each, ast.FunctionDef)]
    bare = [each.name for each in functions if ast.get_docstring(each) is None]
    return CheckResult(
        passed=bool(functions) and not bare,
        score=1 - len(bare) / max(1, len(functions)),
        feedback=f"Without a docstring in pass {context.pass_number}: {', '.join(bare)}"
        if bare
        else "",
    )

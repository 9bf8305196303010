"""A directive that runs Python when the site is built and shows what it printed and drew."""

from __future__ import annotations

import contextlib
import io
import traceback
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive, directives


class Run(Directive):
    """Run the content; code of one page shares its names."""

    has_content = True
    option_spec = {"hide": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Execute, and make nodes of code, output and figures."""
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        environment = self.state.document.settings.env
        names = environment.temp_data.setdefault("run_names", {})
        code = "\n".join(self.content)
        printed = io.StringIO()
        plt.close("all")
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(code, f"<{environment.docname}>", "exec"), names)
        except Exception as error:
            # A page whose example fails must not be published.
            raise RuntimeError(f"{environment.docname}: {traceback.format_exc()}") from error
        found: list[nodes.Node] = []
        if "hide" not in self.options:
            found.append(nodes.literal_block(code, code, language="python"))
        if printed.getvalue():
            output = nodes.literal_block(printed.getvalue(), printed.getvalue(), language="text")
            output["classes"].append("output")
            found.append(output)
        folder = Path(environment.app.outdir) / "_images"
        folder.mkdir(parents=True, exist_ok=True)
        for number in plt.get_fignums():
            count = environment.temp_data["run_figures"] = environment.temp_data.get("run_figures", 0) + 1
            name = f"{environment.docname.replace('/', '_')}_{count}.svg"
            plt.figure(number).savefig(folder / name)
            up = "../" * environment.docname.count("/")
            html = f'<p><img src="{up}_images/{name}" alt="figure {count}" style="max-width:100%"></p>'
            found.append(nodes.raw("", html, format="html"))
        plt.close("all")
        return found


def setup(app):
    """Register the directive; tables are printed whole."""
    import pandas as pd

    pd.set_option("display.width", 110, "display.max_columns", None)
    app.add_directive("run", Run)
    return {"version": "1", "parallel_read_safe": True}

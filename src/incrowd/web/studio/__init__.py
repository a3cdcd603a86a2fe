"""The studio: all steps of a release in a browser, for the data holder, on one machine and without a network.

It is a thin layer: pages call the workflows that the command line calls, on the same `policy.yaml`, and know nothing
of privacy themselves.

**How a page is added.**  One file in `pages/`, one template in `templates/`, one line in `pages.PAGES`:

    # pages/board.py
    def show(request: PageRequest) -> PageContent:
        releases = request.folder.releases()
        return PageContent({"releases": releases}, commands=("incrowd ledger show",))

    PAGE = Page("board", "Release board", "Datasets and what was released of them.", show)

    {# templates/board.html #}
    {% extends "layout.html" %}
    {% block main %}<ul>{% for name in releases %}<li>{{ name }}</li>{% endfor %}</ul>{% endblock %}

It is then at `/board`, its twin at `/board?format=json`, in the menu, and behind the entrance.

- `PageContent.content` holds plain values only: they fill the template, and they are the twin.  What is drawn goes into
  `PageContent.pictures` (`Markup`: inline SVG by `incrowd.drawing`, without `style` attributes, which the policy
  forbids).
- `PageContent.commands` are the command lines that the page equals; the policy's text is shown beside them by itself.
- `request.policy_file()` is the policy of `?policy=`, `request.table()` the table of `?data=`, `request.release()` that
of
  `?release=`: all under the opened folder, or refused.
- What a form does is in `Page.actions`: `POST /board/NAME` calls it with `request.form`; it returns where to go next
  (`request.to("plan", policy=…)`), a `Download`, or a `PageContent` that no address may hold.  A form holds `{{ mark
  }}` (the macro `parts.start` does); nothing is done without it.
- What reads rows is a job: `request.job(key, title, work)` starts it once and returns it.  While it runs, return
  `PageContent(…, job=foremost(job))`: the layout shows progress and a stop button, loads the page again at the end, and
  says why it failed if it did; `result(job)` is what it came to, or None.
- What shows the holder something made from rows is a `rows.RowAccess`, or does what that does: a button starts it, and
  `record_look(policy, "verb")` and `policy_file.seen.add("what")` come first.
- What spends takes `payments.pay`: a typed name, and a key that is valid only while the ledger is unchanged.
- Scripts and styles are in `static/`; `data-live` on a form makes it update the element `#live` while one types.
"""

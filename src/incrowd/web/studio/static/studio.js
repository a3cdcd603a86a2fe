// What the pages do beyond forms and links: copying, dropping files, following jobs, live numbers. Nothing is loaded
// from elsewhere, and every page works without this but for dropping files.
"use strict";

const mark = document.body.dataset.mark;
const $ = (query, from = document) => from.querySelector(query);
const each = (query, act, from = document) => from.querySelectorAll(query).forEach(act);

// Copy a command line.
each("[data-copy]", (button) =>
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  }),
);

each("[data-back]", (link) =>
  link.addEventListener("click", (event) => {
    if (history.length > 1) {
      event.preventDefault();
      history.back();
    }
  }),
);

// Drop a file: it is sent in one request, with its name, and the next page opens.
each("[data-drop]", (zone) => {
  const input = $("input[type=file]", zone);
  const bar = $("progress", zone);
  const told = $("[role=status]", zone);
  const send = (file) => {
    const request = new XMLHttpRequest();
    const into = zone.dataset.into || "";
    request.open("PUT", `/upload?${new URLSearchParams({ name: file.name, into })}`);
    request.setRequestHeader("x-incrowd-mark", mark);
    bar.hidden = false;
    told.textContent = `Copying ${file.name} …`;
    request.upload.onprogress = (event) => (bar.value = (100 * event.loaded) / Math.max(1, event.total));
    request.onload = () => {
      const reply = JSON.parse(request.responseText || "{}");
      const form = $("form", zone);
      if (request.status === 200 && form) {
        form.elements.file.value = reply.name;
        form.submit();
      } else if (request.status === 200) {
        location.assign(zone.dataset.next + encodeURIComponent(reply.name));
      } else {
        bar.hidden = true;
        told.textContent = reply.error || "The file was not stored.";
      }
    };
    request.onerror = () => (told.textContent = "The file was not stored: the studio does not answer.");
    request.send(file);
  };
  input.addEventListener("change", () => input.files.length && send(input.files[0]));
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
  });
});

// Follow a job until its end, then show the page again.
each("[data-job]", (section) => {
  const bar = $("progress", section);
  const told = $(".told", section);
  const rows = new Intl.NumberFormat("en");
  const ask = async () => {
    let job;
    try {
      job = await (await fetch(`/jobs/${section.dataset.job}`)).json();
    } catch {
      told.textContent = "The studio does not answer.";
      return;
    }
    if (job.state !== "running") {
      section.dataset.then ? location.replace(section.dataset.then) : location.reload();
      return;
    }
    if (job.total) {
      bar.max = job.total;
      bar.value = job.done;
    }
    const of = job.total ? ` of ${rows.format(job.total)}` : "";
    told.textContent = job.stopping
      ? "Stopping …"
      : `${rows.format(job.done)} rows${of}, pass ${job.pass}, ${Math.round(job.seconds)} s`;
    setTimeout(ask, 400);
  };
  setTimeout(ask, 150);
});

// A form that does something does it once.
each("form[data-once]", (form) =>
  form.addEventListener("submit", () => setTimeout(() => each("button", (button) => (button.disabled = true), form), 0)),
);
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

// Changes of a form that are not saved yet: a bar says so, and the browser asks before it leaves the page.
const unsaved = new Set();
each("form[data-edits]", (form) => {
  const bar = $(".unsaved", form);
  form.addEventListener("input", () => {
    unsaved.add(form);
    bar.hidden = false;
  });
  form.addEventListener("submit", () => unsaved.delete(form));
});
addEventListener("beforeunload", (event) => unsaved.size && event.preventDefault());

// A button that spends waits for the name of the dataset.
each("[data-typed]", (input) => {
  const button = $("button", input.form);
  const check = () => (button.disabled = input.value.trim() !== input.dataset.typed);
  input.addEventListener("input", check);
  check();
});

// A slider beside a text field, over listed values.
const slide = (slider) => {
  const field = document.getElementById(slider.dataset.for);
  const values = slider.dataset.values.split(" ");
  const nearest = () => {
    const number = (text) => text.split("/").map(Number).reduce((a, b) => a / b);
    const gaps = values.map((value) => Math.abs(number(value) - number(field.value || "0")));
    slider.value = gaps.indexOf(Math.min(...gaps));
    slider.setAttribute("aria-valuetext", field.value);
  };
  slider.max = values.length - 1;
  slider.hidden = false;
  nearest();
  slider.addEventListener("input", () => {
    field.value = values[slider.value];
    slider.setAttribute("aria-valuetext", field.value);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  field.addEventListener("change", nearest);
};
each("input[type=range][data-values]", slide);

each(".slider output", (output) => {
  const slider = document.getElementById(output.htmlFor.toString());
  slider.addEventListener("input", () => (output.textContent = slider.value));
});
each(".pay", (form) => {
  const price = $("[name=look]", form);
  const button = $("button", form);
  price?.addEventListener("input", () => (button.textContent = `Spend ε ${price.value} and preview`));
});

// A form whose numbers live: while one types, the element #live is taken from the page that the form would show.
each("form[data-live]", (form) => {
  let waiting, asking;
  const update = async () => {
    asking?.abort();
    asking = new AbortController();
    const words = new URLSearchParams(new FormData(form));
    for (const name of ["mark", "base"]) words.delete(name);
    const address = `${form.dataset.live}?${words}`;
    $("#live").setAttribute("aria-busy", "true");
    try {
      const reply = await fetch(`${address}&live=1`, { signal: asking.signal });
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const live = $("#live", page) || $(".problem", page);
      if (live) {
        $("#live").replaceChildren(...(live.id === "live" ? live.childNodes : [live]));
        each("#beside-live", (now) => now.replaceChildren(...($("#beside-live", page)?.childNodes || [])));
        if (live.id === "live") history.replaceState(null, "", address);
      }
    } catch (problem) {
      if (problem.name === "AbortError") return;
    }
    $("#live").removeAttribute("aria-busy");
  };
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(update, 120);
  });
});

// Tables that can be filtered, and pictures whose marks tell more.
each("[data-details]", (picture) =>
  picture.addEventListener("click", (event) => {
    const place = event.target.closest("[data-node]");
    if (place) location.assign(place.dataset.node);
  }),
);

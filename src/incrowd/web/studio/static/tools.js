// Dropping the files of a release: they are sent one by one into a new folder, and the next page opens.
"use strict";

document.querySelectorAll("[data-drop-many]").forEach((zone) => {
  const most = 50;
  const input = zone.querySelector("input[type=file]");
  const bar = zone.querySelector("progress");
  const told = zone.querySelector("[role=status]");
  const headers = { "x-incrowd-mark": document.body.dataset.mark };
  const send = async (files) => {
    const kept = files.filter((file) => !file.name.startsWith("."));
    if (!kept.some((file) => file.name === "certificate.json")) {
      told.textContent = "certificate.json is missing: choose all files of a release.";
      return;
    }
    if (kept.length > most) {
      told.textContent = `These are ${kept.length} files, but a release has few: choose only its files.`;
      return;
    }
    const into = `received-${[...crypto.getRandomValues(new Uint8Array(4))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    bar.hidden = false;
    try {
      for (const [at, file] of kept.entries()) {
        told.textContent = `Copying ${file.name} …`;
        const words = new URLSearchParams({ name: file.name, into });
        const reply = await fetch(`/upload?${words}`, { method: "PUT", headers, body: file });
        if (!reply.ok) throw new Error((await reply.json().catch(() => ({}))).error || "A file was not taken.");
        bar.value = (100 * (at + 1)) / kept.length;
      }
      location.assign(zone.dataset.next + encodeURIComponent(into));
    } catch (problem) {
      bar.hidden = true;
      told.textContent = problem.message;
    }
  };
  // The files of what was dropped, folders opened one level deep.
  const opened = async (items) => {
    const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const found = [];
    for (const entry of entries) {
      const inside = entry.isDirectory
        ? await new Promise((done, failed) => entry.createReader().readEntries(done, failed))
        : [entry];
      for (const each of inside) {
        if (each.isFile) found.push(await new Promise((done, failed) => each.file(done, failed)));
      }
    }
    return found;
  };
  input.addEventListener("change", () => input.files.length && send([...input.files]));
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    send(await opened(event.dataTransfer.items));
  });
});

// A name that must be typed to spend, also where a form came while one typed: the browser asks for it before sending.
document.addEventListener("input", (event) => {
  if (event.target.matches("[data-typed]")) {
    const right = event.target.value.trim() === event.target.dataset.typed;
    event.target.setCustomValidity(right ? "" : `Type ${event.target.dataset.typed} to spend.`);
  }
});

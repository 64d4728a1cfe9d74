"use strict";
// Every string that comes from a wheel or a recipe goes through textContent or setAttribute on a
// known attribute: nothing foreign is ever parsed as HTML.
(() => {
  const site = window.WHEELFARM;
  const root = document.body.dataset.root;
  const parts = new Map();
  const waiting = new Map();
  window.WHEELFARM_PART = (name, part) => parts.set(name, part);

  const $ = (id) => document.getElementById(id);
  const make = (tag, text, attributes) => {
    const node = document.createElement(tag);
    if (text !== undefined && text !== null) node.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    return node;
  };
  const fill = (node, ...children) => { node.replaceChildren(...children); return node; };
  const minor = (text) => text.split(".").map(Number);
  const compare = (a, b) => {
    const [x, y] = [minor(a), minor(b)];
    return x[0] - y[0] || x[1] - y[1];
  };
  const unique = (list) => [...new Set(list)];
  const safeLink = (url) => {
    const target = new URL(url, new URL(root + "manifest/packages/", document.baseURI));
    return /^(https?|file):$/.test(target.protocol) ? target.href : "#";
  };

  // A package's data comes as a script, so that pages work from a disk as well as from a server.
  const load = (name) => {
    if (parts.has(name)) return Promise.resolve(parts.get(name));
    if (!waiting.has(name)) {
      waiting.set(name, new Promise((resolve, reject) => {
        const script = make("script", null, { src: `${root}assets/data/${encodeURIComponent(name)}.js` });
        script.onload = () => resolve(parts.get(name));
        script.onerror = () => { waiting.delete(name); reject(new Error(`${name} could not be loaded`)); };
        document.head.append(script);
      }));
    }
    return waiting.get(name);
  };

  // Wheel file names: name-version(-build)-python-abi-platform.whl
  const tagsOf = (filename) => {
    const words = filename.slice(0, -4).split("-");
    const [python, abi, platform] = words.slice(-3).map((word) => word.split("."));
    return { python, abi, platform };
  };
  const servesPython = (tags, python) => {
    const threaded = python.endsWith("t");
    const [, low] = python.replace("t", "").split(".").map(Number);
    const own = `cp3${low}`;
    return tags.python.some((word) => {
      if (tags.abi.includes("none")) return word === "py3" || word === "py2.py3" || word === own;
      if (tags.abi.includes("abi3")) return !threaded && /^cp3\d+$/.test(word) && Number(word.slice(3)) <= low;
      return word === own && tags.abi.includes(threaded ? `${own}t` : own);
    });
  };
  const servesPlatform = (tags, platform) => tags.platform.some((tag) => {
    if (tag === "any") return true;
    if (platform === "windows_amd64") return tag === "win_amd64";
    return /^(linux|manylinux|musllinux)/.test(tag) && tag.endsWith(platform.replace("linux", ""));
  });
  const TEGRA = new Set(["5.3", "6.2", "7.2", "8.7", "11.0"]);
  const sassRuns = (code, gpu) => {
    const suffix = /[af]$/.test(code) ? code.slice(-1) : "";
    const plain = suffix ? code.slice(0, -1) : code;
    const [[major, low], [gpuMajor, gpuLow]] = [minor(plain), minor(gpu)];
    if (major !== gpuMajor || gpuLow < low) return false;
    if (suffix === "a") return low === gpuLow;
    if (TEGRA.has(plain) !== TEGRA.has(gpu)) return false;
    return !TEGRA.has(plain) || low === gpuLow;
  };
  const ptxRuns = (code, gpu) => {
    const suffix = /[af]$/.test(code) ? code.slice(-1) : "";
    const plain = suffix ? code.slice(0, -1) : code;
    const order = compare(gpu, plain);
    if (suffix === "a") return order === 0;
    if (suffix === "f") return minor(plain)[0] === minor(gpu)[0] && order >= 0;
    return order >= 0;
  };
  const servesGpu = (wheel, gpu) => !gpu || !wheel.modules || wheel.modules.every((module) =>
    module.sass.some((code) => sassRuns(code, gpu)) || module.ptx.some((code) => ptxRuns(code, gpu)));
  const serves = (wheel, choice) => {
    const tags = tagsOf(wheel.filename);
    return wheel.yanked === undefined
      && wheel.channels.includes(`${choice.cuda}/torch${choice.torch}`)
      && servesPython(tags, choice.python) && servesPlatform(tags, choice.platform)
      && servesGpu(wheel, choice.gpu);
  };
  const best = (part, choice) => part.wheels.find((wheel) => serves(wheel, choice));

  const PLATFORMS = { linux_x86_64: "Linux x86-64", linux_aarch64: "Linux ARM64", windows_amd64: "Windows x86-64" };
  const GPUS = {
    "7.0": "V100", "7.5": "RTX 20, GTX 16, T4", "8.0": "A100, A30", "8.6": "RTX 30, A40, A10",
    "8.7": "Jetson Orin", "8.9": "RTX 40, L4, L40S", "9.0": "H100, H200", "10.0": "B200, GB200",
    "10.3": "B300, GB300", "11.0": "Jetson Thor", "12.0": "RTX 50, RTX PRO", "12.1": "GB10",
  };
  const cudaName = (word) => word.replace(/^cu(\d\d)(\d+)$/, "CUDA $1.$2");

  const option = (value, text) => make("option", text, { value });
  const setOptions = (select, entries, wanted) => {
    fill(select, ...entries.map(([value, text]) => option(value, text)));
    if (entries.some(([value]) => value === wanted)) select.value = wanted;
  };

  const pythonsOf = (choice) => unique(site.shipped
    .filter((row) => row.accelerator === choice.cuda && row.torch === choice.torch && (!choice.platform || row.platform === choice.platform))
    .flatMap((row) => row.pythons)).sort((a, b) => compare(a.replace("t", ""), b.replace("t", "")) || a.localeCompare(b));

  const find = () => {
    const names = Object.keys(site.packages);
    const ticked = new Set(new URLSearchParams(location.search).getAll("package").filter((name) => names.includes(name)));
    const cudas = unique(site.combinations.map((each) => each.accelerator));
    const choice = () => ({
      platform: $("platform").value, cuda: $("cuda").value, torch: $("torch").value,
      python: $("python").value, gpu: $("gpu").value,
    });
    const torches = () => site.combinations.filter((each) => each.accelerator === $("cuda").value).map((each) => each.torch);
    const pythons = () => {
      const found = pythonsOf(choice());
      return found.length ? found : unique(site.shipped.flatMap((row) => row.pythons).concat(["3.10", "3.11", "3.12", "3.13"]));
    };
    const refresh = () => {
      setOptions($("torch"), torches().map((word) => [word, `torch ${word}`]).reverse(), $("torch").value);
      setOptions($("python"), pythons().map((word) => [word, word.endsWith("t") ? `${word.slice(0, -1)} free-threaded` : word]), $("python").value);
    };
    setOptions($("platform"), Object.entries(PLATFORMS), navigator.platform.startsWith("Win") ? "windows_amd64" : "linux_x86_64");
    setOptions($("cuda"), cudas.map((word) => [word, cudaName(word)]).reverse(), site.fallback ? site.fallback.accelerator : "");
    setOptions($("gpu"), [["", "any, I know it fits"], ...Object.entries(GPUS).sort((a, b) => compare(a[0], b[0])).map(([arch, text]) => [arch, `${text} (${arch})`])], "");
    setOptions($("torch"), torches().map((word) => [word, `torch ${word}`]).reverse(), site.fallback ? site.fallback.torch : "");
    refresh();
    if (pythons().includes("3.12")) $("python").value = "3.12";

    const drawTicks = () => {
      const needle = $("filter").value.trim().toLowerCase().replace(/[-_.]+/g, "-");
      fill($("packages"), ...names.filter((name) => name.includes(needle) || ticked.has(name)).slice(0, 400).map((name) => {
        const box = make("input", null, { type: "checkbox", value: name, name: "package" });
        box.checked = ticked.has(name);
        box.addEventListener("change", () => { if (box.checked) ticked.add(name); else ticked.delete(name); show(); });
        const label = make("label");
        label.append(box, make("span", name));
        return label;
      }));
    };

    const changes = (loaded, now) => {
      const works = (other) => loaded.every(([, part]) => best(part, other));
      const found = [];
      const attempt = (key, values, words) => {
        const good = values.filter((value) => value !== now[key] && works({ ...now, [key]: value }));
        if (good.length) found.push(words(good));
      };
      const near = (values, wanted) => [...values].sort((a, b) => Math.abs(minor(a)[1] - minor(wanted)[1]) - Math.abs(minor(b)[1] - minor(wanted)[1]));
      attempt("python", near(unique(site.shipped.flatMap((row) => row.pythons)), now.python), (good) => `Python ${good[0]} instead of ${now.python}`);
      attempt("torch", near(torches(), now.torch), (good) => `torch ${good[0]} instead of ${now.torch}`);
      attempt("cuda", cudas, (good) => `${good.map(cudaName).join(" or ")} instead of ${cudaName(now.cuda)}`);
      attempt("gpu", [""], () => `another GPU: no wheel here has code for ${now.gpu}`);
      attempt("platform", Object.keys(PLATFORMS), (good) => `${good.map((word) => PLATFORMS[word]).join(" or ")} instead of ${PLATFORMS[now.platform]}`);
      return found;
    };

    const commandRow = (tool, text) => {
      const row = make("div", null, { class: "command" });
      const button = make("button", "Copy", { type: "button", "aria-label": `Copy the ${tool} command` });
      button.addEventListener("click", async () => {
        try { await navigator.clipboard.writeText(text); } catch { selectText(code); document.execCommand("copy"); }
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      });
      const code = make("pre", text, { "data-tool": tool, tabindex: "0" });
      row.append(make("b", tool), code, button);
      return row;
    };
    const selectText = (node) => {
      const range = document.createRange();
      range.selectNodeContents(node);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    };
    const publicLink = (wheel) => {
      const target = new URL(wheel.url, new URL(`${root}manifest/packages/`, site.base || document.baseURI));
      return `${target.href}#sha256=${wheel.sha256}`;
    };
    const quote = (text) => `"${text}"`;
    const versionOf = (filename) => filename.split("-")[1];

    const answer = (chosen, now) => {
      const index = new URL(`${root}${now.cuda}/torch${now.torch}/simple/`, site.base || document.baseURI).href;
      const pins = chosen.map(([name, wheel]) => `${name}==${versionOf(wheel.filename)}`);
      const only = chosen.map(([name]) => name);
      const box = make("div", null, { class: "note good" });
      box.append(make("strong", chosen.length > 1 ? "These wheels fit." : "This wheel fits."));
      const out = [box,
        commandRow("pip", `pip install --only-binary ${only.join(",")} --extra-index-url ${index} ${pins.map(quote).join(" ")}`),
        commandRow("uv", `uv pip install ${only.map((name) => `--no-build-package ${name}`).join(" ")} --index ${index} ${pins.map(quote).join(" ")}`),
        commandRow("pixi", `pixi add --pypi ${chosen.map(([name, wheel]) => quote(`${name} @ ${publicLink(wheel)}`)).join(" ")}`)];
      const jit = chosen.filter(([, wheel]) => wheel.runtime_jit).map(([name]) => name);
      if (jit.length) out.push(make("p", `${jit.join(", ")} compiles kernels on your machine when it runs and needs a CUDA toolkit there.`, { class: "note" }));
      const list = make("ul");
      for (const [, wheel] of chosen) {
        const item = make("li");
        item.append(make("a", wheel.filename, { href: safeLink(wheel.url) }), ` ${megabytes(wheel.size)}`);
        list.append(item);
      }
      out.push(make("h2", "Files"), list);
      return out;
    };

    let round = 0;
    const show = async () => {
      const mine = ++round;
      const now = choice();
      const names = [...ticked];
      if (!names.length) { fill($("result"), make("p", "Tick at least one package.", { class: "lead" })); return; }
      let loaded;
      try { loaded = await Promise.all(names.map(async (name) => [name, await load(name)])); } catch (error) {
        if (mine === round) fill($("result"), make("p", String(error.message), { class: "note" }));
        return;
      }
      if (mine !== round) return;
      const chosen = loaded.map(([name, part]) => [name, best(part, now)]);
      const missing = chosen.filter(([, wheel]) => !wheel).map(([name]) => name);
      if (!missing.length) { fill($("result"), ...answer(chosen, now)); return; }
      const box = make("div", null, { class: "note" });
      box.append(make("strong", `No wheel of ${missing.join(", ")} fits this choice.`));
      const advice = changes(loaded, now);
      if (advice.length) {
        box.append(make("p", "One change makes it fit:"));
        const list = make("ul");
        list.append(...advice.map((text) => make("li", text)));
        box.append(list);
      } else box.append(make("p", "No single change makes it fit; untick a package or look at the coverage page."));
      fill($("result"), box);
    };

    const paste = () => {
      const text = $("paste").value;
      const found = readHost(text);
      const set = (id, value) => { if (value && [...$(id).options].some((each) => each.value === value)) $(id).value = value; };
      set("platform", found.platform); set("cuda", found.cuda); refresh();
      set("torch", found.torch); refresh(); set("python", found.python); set("gpu", found.gpu);
      $("pasted").textContent = text.trim() ? (found.words.length ? `Read: ${found.words.join(", ")}.` : "Nothing known was found in this text.") : "";
      show();
    };
    for (const id of ["platform", "cuda", "torch", "python", "gpu"]) $(id).addEventListener("change", () => { refresh(); show(); });
    $("filter").addEventListener("input", drawTicks);
    $("paste").addEventListener("input", paste);
    $("form").addEventListener("submit", (event) => event.preventDefault());
    drawTicks();
    show();
  };

  // The output of `wheelfarm host --json`, or of nvidia-smi.
  const readHost = (text) => {
    const found = { words: [] };
    const note = (key, value, words) => { if (value && !found[key]) { found[key] = value; found.words.push(words || value); } };
    let host = null;
    try { host = JSON.parse(text); } catch { host = null; }
    const value = (fact) => (fact && typeof fact === "object" && "value" in fact ? fact.value : fact);
    if (host && typeof host === "object") {
      const text = (key) => { const fact = value(host[key]); return fact === null || fact === undefined ? "" : String(fact); };
      note("platform", text("platform"));
      const torch = (text("torch").match(/^(\d+\.\d+)/) || [])[1];
      note("torch", torch, `torch ${torch}`);
      if (/^cu\d+$/.test(text("accelerator"))) note("cuda", text("accelerator"), cudaName(text("accelerator")));
      if (/^3\.\d+t?$/.test(text("python"))) note("python", text("python"), `Python ${text("python")}`);
      const gpus = value(host.gpus);
      const first = Array.isArray(gpus) && gpus[0];
      const arch = first && first.capability;
      if (arch) note("gpu", String(arch), `GPU ${arch}`);
    } else {
      const names = [["RTX 50", "12.0"], ["RTX PRO", "12.0"], ["B200", "10.0"], ["GB200", "10.0"], ["H100", "9.0"], ["H200", "9.0"], ["GH200", "9.0"],
        ["RTX 40", "8.9"], ["L40", "8.9"], ["NVIDIA L4", "8.9"], ["RTX 30", "8.6"], ["A40", "8.6"], ["A10", "8.6"], ["A100", "8.0"], ["A30", "8.0"],
        ["RTX 20", "7.5"], ["Tesla T4", "7.5"], ["GTX 16", "7.5"], ["V100", "7.0"]];
      const hit = names.find(([name]) => text.includes(name));
      if (hit) note("gpu", hit[1], `GPU ${hit[0]}`);
      const driver = text.match(/CUDA Version:\s*(\d+)\.(\d+)/);
      if (driver) {
        const fits = unique(site.combinations.map((each) => each.accelerator)).filter((word) => {
          const digits = word.match(/^cu(\d\d)(\d+)$/);
          return digits && compare(`${digits[1]}.${digits[2]}`, `${driver[1]}.${driver[2]}`) <= 0;
        });
        if (fits.length) note("cuda", fits[fits.length - 1], `driver for CUDA ${driver[1]}.${driver[2]}`);
      }
    }
    return found;
  };

  const megabytes = (bytes) => (typeof bytes === "number" ? (bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`) : "");

  const coverage = () => {
    const platforms = Object.keys(PLATFORMS);
    setOptions($("platform"), platforms.map((word) => [word, PLATFORMS[word]]), "linux_x86_64");
    const grid = window.WHEELFARM_GRID || { cells: {} };
    const draw = () => {
      const platform = $("platform").value;
      const needle = $("filter").value.trim().toLowerCase().replace(/[-_.]+/g, "-");
      const columns = [...site.combinations].reverse();
      const head = make("tr");
      head.append(make("th", "package", { scope: "col" }), ...columns.map((each) => make("th", `${each.accelerator} ${each.torch}`, { scope: "col" })));
      const rows = Object.entries(site.packages).filter(([name]) => name.includes(needle)).slice(0, 500).map(([name, known]) => {
        const row = make("tr");
        const title = make("th", null, { scope: "row" });
        title.append(make("a", name, { href: `${root}packages/${encodeURIComponent(name)}/index.html` }));
        row.append(title, ...columns.map((each) => cell(name, known, each, platform, grid)));
        return row;
      });
      fill($("heat").tHead, head);
      fill($("heat").tBodies[0], ...rows);
    };
    $("platform").addEventListener("change", draw);
    $("filter").addEventListener("input", draw);
    draw();
  };
  const cell = (name, known, each, platform, grid) => {
    const path = `${each.accelerator}/torch${each.torch}`;
    const shipped = site.shipped.find((row) => row.accelerator === each.accelerator && row.torch === each.torch && row.platform === platform);
    const wanted = shipped ? shipped.pythons : [];
    const have = (known.cover[path] || {})[platform] || [];
    const decided = ((grid.cells[name] || {})[path] || {})[platform] || {};
    const lines = wanted.map((python) => {
      if (have.includes(python)) return `${python}: built`;
      const word = decided[python];
      return word ? `${python}: ${word.status}${word.reason ? `, ${word.reason}` : ""}` : `${python}: missing`;
    });
    const states = wanted.filter((python) => !have.includes(python)).map((python) => (decided[python] || {}).status);
    const built = have.length;
    let kind = "empty";
    if (states.includes("failed")) kind = "failed";
    else if (built && !states.some((state) => state !== "refused")) kind = "full";
    else if (built) kind = "part";
    else if (states.length && states.every((state) => state === "refused")) kind = "refused";
    const text = wanted.length || built ? `${built}/${Math.max(wanted.length, built)}` : "";
    const node = make("td", text, { class: kind, title: `${name} ${path}\n${lines.join("\n") || "PyTorch ships no such torch"}` });
    node.append(make("span", ` ${kind}`, { class: "skip" }));
    return node;
  };

  const archs = () => {
    const all = unique(Object.values(site.packages).flatMap((known) => Object.values(known.archs).flatMap((each) => [...each.sass, ...each.ptx.map((code) => code)])))
      .sort((a, b) => compare(a.replace(/[af]$/, ""), b.replace(/[af]$/, "")) || a.localeCompare(b));
    const head = make("tr");
    head.append(make("th", "package", { scope: "col" }), make("th", "line", { scope: "col" }), ...all.map((code) => make("th", code, { scope: "col", title: GPUS[code.replace(/[af]$/, "")] || "" })));
    fill($("archs").tHead, head);
    const rows = [];
    for (const [name, known] of Object.entries(site.packages)) {
      for (const [line, has] of Object.entries(known.archs)) {
        const row = make("tr");
        row.append(make("th", name, { scope: "row" }), make("td", line), ...all.map((code) => {
          const machine = has.sass.includes(code), ptx = has.ptx.includes(code);
          return make("td", machine && ptx ? "code + PTX" : machine ? "code" : ptx ? "PTX" : "", { class: machine ? "full" : ptx ? "part" : "empty" });
        }));
        rows.push(row);
      }
    }
    fill($("archs").tBodies[0], ...rows);
  };

  const torch = () => {
    const lines = unique(site.shipped.map((row) => row.accelerator));
    const minors = unique(site.shipped.map((row) => row.torch)).sort(compare).reverse();
    const head = make("tr");
    head.append(make("th", "torch", { scope: "col" }), ...lines.map((line) => make("th", cudaName(line), { scope: "col" })));
    fill($("shipped").tHead, head);
    fill($("shipped").tBodies[0], ...minors.map((word) => {
      const row = make("tr");
      row.append(make("th", word, { scope: "row" }), ...lines.map((line) => {
        const node = make("td");
        for (const [platform, title] of Object.entries(PLATFORMS)) {
          const found = site.shipped.find((each) => each.accelerator === line && each.torch === word && each.platform === platform);
          if (found) node.append(make("div", `${title}: ${found.pythons.join(", ")}`));
        }
        return node;
      }));
      return row;
    }));
  };

  const page = async () => {
    const name = document.body.dataset.package;
    let part;
    try { part = await load(name); } catch (error) { $("status").textContent = error.message; return; }
    const words = unique(part.wheels.map((wheel) => wheel.channels.length ? wheel.channels : ["no channel"]).flat());
    setOptions($("channel"), [["", "all channels"], ...words.sort().reverse().map((word) => [word, word])], "");
    const draw = () => {
      const channel = $("channel").value;
      const shown = part.wheels.filter((wheel) => !channel || wheel.channels.includes(channel) || (channel === "no channel" && !wheel.channels.length));
      $("status").textContent = `${shown.length} of ${part.wheels.length} wheels`;
      fill($("wheels").tBodies[0], ...shown.slice(0, 1000).map(wheelRow));
    };
    $("channel").addEventListener("change", draw);
    draw();
    const days = new Map();
    for (const wheel of part.wheels) {
      const day = String(wheel.uploaded || "").slice(0, 10);
      days.set(day, [...(days.get(day) || []), wheel]);
    }
    fill($("history"), ...[...days].sort((a, b) => b[0].localeCompare(a[0])).map(([day, wheels]) => {
      const versions = unique(wheels.map((wheel) => wheel.filename.split("-")[1].split("+")[0]));
      return make("li", `${day}: ${wheels.length} ${wheels.length > 1 ? "wheels" : "wheel"} of ${versions.join(", ")}`);
    }));
  };
  const AXES = { linked: "one torch", stable_abi: "stable torch ABI", abi_flag: "any torch of one C++ ABI", free: "any torch" };
  const wheelRow = (wheel) => {
    const row = make("tr");
    const file = make("td", null, { class: "file" });
    file.append(make("a", wheel.filename, { href: safeLink(wheel.url), class: wheel.yanked === undefined ? "" : "yanked" }));
    if (wheel.yanked !== undefined) file.append(make("div", `yanked: ${wheel.yanked}`));
    const codes = unique((wheel.modules || []).flatMap((module) => [...module.sass, ...module.ptx.map((code) => `${code}+PTX`)]));
    const chips = make("td");
    chips.append(...codes.map((code) => make("span", code, { class: "chip" })));
    const report = make("td");
    if (document.body.dataset.reports && /^[0-9a-f]{64}$/.test(wheel.report || "")) {
      const name = encodeURIComponent(document.body.dataset.package);
      report.append(make("a", "report", { href: `${root}reports/${name}/${wheel.report}.json` }));
    }
    for (const warning of wheel.warnings || []) report.append(make("div", warning));
    row.append(file, make("td", AXES[wheel.torch_axis] || "not proven"), make("td", megabytes(wheel.size), { class: "tight" }), chips,
      make("td", wheel.glibc || ""), make("td", String(wheel.uploaded || "").slice(0, 10), { class: "tight" }), report);
    return row;
  };

  const list = () => {
    const draw = () => {
      const needle = $("filter").value.trim().toLowerCase().replace(/[-_.]+/g, "-");
      fill($("packages").tBodies[0], ...Object.entries(site.packages).filter(([name]) => name.includes(needle)).slice(0, 1000).map(([name, known]) => {
        const row = make("tr");
        const title = make("th", null, { scope: "row" });
        title.append(make("a", name, { href: `${encodeURIComponent(name)}/index.html` }));
        row.append(title, make("td", known.versions[known.versions.length - 1]), make("td", String(known.wheels)), make("td", String(known.channels.length)));
        return row;
      }));
    };
    $("filter").addEventListener("input", draw);
    draw();
  };

  ({ find, coverage, archs, torch, page, list })[document.body.dataset.page]();
})();

"use strict";
// What a page has without this file: everything. With it: values under the pointer, switches for
// series, sorting of tables, and a download of the data.
(function () {
  var all = function (selector, under) {
    return Array.prototype.slice.call((under || document).querySelectorAll(selector));
  };
  var make = function (name, text) {
    var element = document.createElement(name);
    if (text) element.textContent = text;
    return element;
  };

  all(".download").forEach(function (line) {
    var link = line.querySelector("a");
    line.hidden = false;
    link.addEventListener("click", function () {
      var text = document.getElementById(link.dataset.of).textContent;
      link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    });
  });

  var value_of = function (row, column) {
    var cell = row.cells[column];
    if (!cell) return "";
    return cell.dataset.n === undefined ? cell.textContent : Number(cell.dataset.n);
  };
  var before = function (a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b);
  };
  all("table").forEach(function (table) {
    var body = table.tBodies[0];
    if (body.rows.length < 3) return;
    all("thead th", table).forEach(function (head, column) {
      var button = make("button", head.textContent);
      if (!head.textContent) return;
      button.type = "button";
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") === "ascending";
        all("th", head.parentNode).forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        Array.prototype.slice.call(body.rows).sort(function (a, b) {
          var order = before(value_of(a, column), value_of(b, column));
          return down ? -order : order;
        }).forEach(function (row) { body.appendChild(row); });
      });
    });
  });

  // A drawing's axes say what lies between their ends; its lines are read off their paths.
  var scale_of = function (text, from, to) {
    var parts = text.split(" ");
    var log = parts[2] === "log";
    var low = log ? Math.log(Number(parts[0])) : Number(parts[0]);
    var high = log ? Math.log(Number(parts[1])) : Number(parts[1]);
    return function (place) {
      var value = low + (place - from) / (to - from) * (high - low);
      return log ? Math.exp(value) : value;
    };
  };
  var numbers = function (text) { return text.match(/-?[0-9.]+/g).map(Number); };
  var shown = function (value) { return String(Number(value.toPrecision(4))); };

  all(".chart").forEach(function (figure) {
    var svg = figure.querySelector("svg");
    var scroll = figure.querySelector(".scroll");
    var title = svg.querySelector("title");
    if (title && title.parentNode === svg) {  // else a browser shows it over every value
      svg.setAttribute("aria-label", title.textContent);
      svg.removeChild(title);
    }
    var series = all("g[data-series]", svg);
    if (series.length > 1) {
      var switches = make("div");
      switches.className = "toggles";
      switches.setAttribute("role", "group");
      switches.setAttribute("aria-label", "Series shown");
      series.forEach(function (group) {
        var button = make("button", group.dataset.series);
        button.type = "button";
        button.setAttribute("aria-pressed", "true");
        button.addEventListener("click", function () {
          var hide = button.getAttribute("aria-pressed") === "true";
          button.setAttribute("aria-pressed", String(!hide));
          group.style.display = hide ? "none" : "";
        });
        switches.appendChild(button);
      });
      figure.insertBefore(switches, scroll);
    }
    // On a narrow screen the right end of a drawing, where its key is, has to be scrolled to.
    var entries = all("g.key > g", svg);
    if (entries.length > 1) {
      var alone = svg.cloneNode(false);
      var row = 18;
      var widest = 0;
      entries.forEach(function (entry, i) {
        var box = entry.getBBox();
        var copy = entry.cloneNode(true);
        var middle = box.y + box.height / 2;
        copy.setAttribute("transform", "translate(" + -box.x + " " + ((i + 0.5) * row - middle) + ")");
        widest = Math.max(widest, box.width);
        alone.appendChild(copy);
      });
      alone.setAttribute("viewBox", "0 0 " + (widest + 2) + " " + entries.length * row);
      alone.setAttribute("width", widest + 2);
      alone.setAttribute("height", entries.length * row);
      alone.setAttribute("class", svg.getAttribute("class") + " key-alone");
      alone.setAttribute("aria-hidden", "true");
      figure.insertBefore(alone, scroll);
    }
    var edge = svg.querySelector("path[data-x]");
    if (!edge || series.length === 0) return;
    var corner = numbers(edge.getAttribute("d"));  // left, top, bottom, right
    var x_at = scale_of(edge.dataset.x, corner[0], corner[3]);
    var y_at = scale_of(edge.dataset.y, corner[2], corner[1]);
    var readout = make("p", " ");
    readout.className = "readout";
    readout.setAttribute("aria-live", "polite");
    figure.insertBefore(readout, scroll.nextSibling);
    var line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    line.setAttribute("class", "pointer");
    line.setAttribute("y1", corner[1]);
    line.setAttribute("y2", corner[2]);
    line.style.display = "none";
    svg.appendChild(line);
    var points = null;
    var read = function () {
      points = series.map(function (group) {
        var places = [];
        all("path.line", group).forEach(function (path) {
          var list = numbers(path.getAttribute("d"));
          for (var i = 0; i + 1 < list.length; i += 2) places.push([list[i], list[i + 1]]);
        });
        return places;
      });
    };
    var at = corner[0];
    var tell = function (place) {
      if (points === null) read();
      at = Math.min(Math.max(place, corner[0]), corner[3]);
      var told = [];
      var nearest = null;
      points.forEach(function (places, i) {
        if (places.length === 0 || series[i].style.display === "none") return;
        var low = 0;
        var high = places.length - 1;
        while (low < high) {
          var middle = (low + high) >> 1;
          if (places[middle][0] < at) low = middle + 1; else high = middle;
        }
        if (low > 0 && at - places[low - 1][0] < places[low][0] - at) low -= 1;
        nearest = places[low][0];
        told.push(series[i].dataset.series + " " + shown(y_at(places[low][1])));
      });
      if (nearest === null) return;
      line.setAttribute("x1", nearest);
      line.setAttribute("x2", nearest);
      line.style.display = "";
      readout.textContent = "at " + shown(x_at(nearest)) + ": " + told.join(", ");
    };
    svg.addEventListener("pointermove", function (event) {
      var matrix = svg.getScreenCTM();
      if (matrix) tell((event.clientX - matrix.e) / matrix.a);
    });
    svg.addEventListener("pointerleave", function () { line.style.display = "none"; });
    scroll.addEventListener("keydown", function (event) {
      var step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (step === 0 || scroll.scrollWidth > scroll.clientWidth) return;
      event.preventDefault();
      tell(at + step * (corner[3] - corner[0]) / 100);
    });
  });
})();

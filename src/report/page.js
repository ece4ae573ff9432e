"use strict";
// The page is complete without scripts. They add values under the pointer, switches for series,
// sorting of tables, and a download of the data.
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

  // The values at the ends of a drawing's axes are attributes; points are read from its paths.
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
  var shown = function (value) {
    return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en-US")
                                   : String(Number(value.toPrecision(4)));
  };

  // Values under the pointer of one drawing; `readout` is shared by the drawings of a figure.
  var follow_pointer = function (drawing, readout) {
    var svg = drawing.querySelector("svg");
    var series = all("g[data-series]", svg);
    var edge = svg.querySelector("path[data-x]");
    var corner = numbers(edge.getAttribute("d"));  // left, top, bottom, right
    var x_at = scale_of(edge.dataset.x, corner[0], corner[3]);
    var y_at = scale_of(edge.dataset.y, corner[2], corner[1]);
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
    var show = function (place) {
      if (points === null) read();
      at = Math.min(Math.max(place, corner[0]), corner[3]);
      var values = [];
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
        values.push(series[i].dataset.series + " " + shown(y_at(places[low][1])));
      });
      if (nearest === null) return;
      line.setAttribute("x1", nearest);
      line.setAttribute("x2", nearest);
      line.style.display = "";
      readout.textContent = "at " + shown(x_at(nearest)) + ": " + values.join(", ");
    };
    svg.addEventListener("pointermove", function (event) {
      var matrix = svg.getScreenCTM();
      if (matrix) show((event.clientX - matrix.e) / matrix.a);
    });
    svg.addEventListener("pointerleave", function () { line.style.display = "none"; });
    drawing.addEventListener("keydown", function (event) {
      var step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (step === 0) return;
      event.preventDefault();
      show(at + step * (corner[3] - corner[0]) / 100);
    });
  };

  all(".chart").forEach(function (figure) {
    var drawings = all(".drawing", figure);
    drawings.forEach(function (drawing) {
      var svg = drawing.querySelector("svg");
      var title = svg.querySelector("title");
      if (title && title.parentNode === svg) {  // browsers would show it over every value
        svg.setAttribute("aria-label", title.textContent);
        svg.removeChild(title);
      }
    });
    var names = all("g[data-series]", drawings[0]);
    if (names.length > 1) {
      var switches = make("div");
      switches.className = "toggles";
      switches.setAttribute("role", "group");
      switches.setAttribute("aria-label", "Series shown");
      names.forEach(function (named, i) {
        var button = make("button", named.dataset.series);
        button.type = "button";
        button.setAttribute("aria-pressed", "true");
        button.addEventListener("click", function () {
          var hide = button.getAttribute("aria-pressed") === "true";
          button.setAttribute("aria-pressed", String(!hide));
          drawings.forEach(function (drawing) {
            all("g[data-series]", drawing)[i].style.display = hide ? "none" : "";
          });
        });
        switches.appendChild(button);
      });
      figure.insertBefore(switches, drawings[0]);
    }
    if (names.length === 0 || !drawings[0].querySelector("path[data-x]")) return;
    var readout = make("p", " ");
    readout.className = "readout";
    readout.setAttribute("aria-live", "polite");
    figure.insertBefore(readout, drawings[drawings.length - 1].nextSibling);
    drawings.forEach(function (drawing) { follow_pointer(drawing, readout); });
  });
})();

// Tables that the API sorts and pages: headings are buttons, and what is shown is announced.

import { el, fill, fresh } from "./dom.js";

/**
 * A table. columns: [{key, label, number, wide, sort, cell: (row) => node or text}]; `wide` ones are left out on a phone.
 * ask: ({sort, descending, offset, limit}) => {rows, total}, called whenever something else is to be shown.
 */
export class Table {
  constructor(place, { caption, columns, ask, sort = null, descending = true, limit = 25, none = "Nothing to show.", fail = () => {} }) {
    Object.assign(this, { columns, ask, sort, descending, limit, none, fail, offset: 0, turn: 0 });
    const title = fresh("table");
    this.head = el("tr", {});
    this.body = el("tbody", {});
    this.count = el("p", { class: "soft count", role: "status" });
    this.back = el("button", { type: "button", onclick: () => this.go(this.offset - this.limit).catch(this.fail) }, "Previous");
    this.next = el("button", { type: "button", onclick: () => this.go(this.offset + this.limit).catch(this.fail) }, "Next");
    this.pager = el("div", { class: "pager" }, this.count, this.back, this.next);
    place.append(
      el(
        "div",
        { class: "table", role: "region", tabindex: "0", "aria-labelledby": title },
        el("table", {}, el("caption", { id: title, class: "unseen" }, caption), el("thead", {}, this.head), this.body),
      ),
      this.pager,
    );
  }

  /** Shows other columns from now on. */
  use(columns) {
    this.columns = columns;
    return this.refresh();
  }

  /** Shows from another row on. */
  go(offset) {
    this.offset = Math.max(0, offset);
    return this.refresh();
  }

  /** Sorts by a column, or the other way round if it was sorted by it. */
  order(column) {
    if (this.sort === column.sort) this.descending = !this.descending;
    else [this.sort, this.descending] = [column.sort, column.number === true];
    return this.go(0);
  }

  headings() {
    const focused = this.head.contains(document.activeElement) ? document.activeElement.dataset.sort : null;
    fill(
      this.head,
      ...this.columns.map((column) => {
        const sorted = column.sort !== undefined && column.sort === this.sort;
        const direction = this.descending ? "descending" : "ascending";
        const label = column.sort === undefined
          ? column.label
          : el(
              "button",
              { type: "button", class: "sort", "data-sort": column.sort, onclick: () => this.order(column).catch(this.fail) },
              el("bdi", {}, column.label),
              el("span", { class: "arrow", "aria-hidden": "true" }, sorted ? (this.descending ? " ↓" : " ↑") : ""),
            );
        return el("th", { scope: "col", class: kind(column, sorted), "aria-sort": sorted ? direction : null }, label);
      }),
    );
    if (focused !== null) [...this.head.querySelectorAll("button")].find((one) => one.dataset.sort === focused)?.focus();
  }

  /** Asks anew, and shows the answer unless another was asked for meanwhile. */
  async refresh() {
    this.turn += 1;
    const turn = this.turn;
    const { rows, total } = await this.ask({
      sort: this.sort,
      descending: this.descending,
      offset: this.offset,
      limit: this.limit,
    });
    if (turn !== this.turn) return;
    if (!rows.length && this.offset > 0 && total > 0) {
      await this.go(Math.floor((total - 1) / this.limit) * this.limit);
      return;
    }
    this.headings();
    fill(
      this.body,
      ...(rows.length
        ? rows.map((row) => el("tr", {}, this.columns.map((column, place) => this.cell(row, column, place))))
        : [el("tr", {}, el("td", { colspan: this.columns.length, class: "soft" }, this.none))]),
    );
    const last = this.offset + rows.length;
    this.count.textContent = total ? `${(this.offset + 1).toLocaleString()}–${last.toLocaleString()} of ${total.toLocaleString()}` : "";
    this.back.disabled = this.offset === 0;
    this.next.disabled = last >= total;
    this.pager.hidden = total <= this.limit && this.offset === 0;
  }

  cell(row, column, place) {
    const sorted = column.sort !== undefined && column.sort === this.sort;
    const tag = place === 0 ? "th" : "td";
    return el(tag, { scope: place === 0 ? "row" : null, class: kind(column, sorted) }, column.cell(row) ?? "–");
  }
}

function kind(column, sorted) {
  return [column.number && "number", column.wide && !sorted && "wide", sorted && "sorted"].filter(Boolean).join(" ") || null;
}

/** A small picture of an estimate: its interval on the objective's scale, with the mean in it. For the eye only. */
export function span({ mean, low, high }, [from, to]) {
  const share = (value) => `${(100 * Math.min(Math.max((value - from) / (to - from || 1), 0), 1)).toFixed(1)}%`;
  const whole = el("span", { class: "span", "aria-hidden": "true" });
  const range = el("span", { class: "range" });
  const dot = el("span", { class: "mean" });
  range.style.insetInlineStart = share(low);
  range.style.insetInlineEnd = `${(100 - parseFloat(share(high))).toFixed(1)}%`;
  dot.style.insetInlineStart = share(mean);
  whole.append(range, dot);
  return whole;
}

/** Work on one name happens one at a time, in the order of the calls; different names do not wait for each other. */
export class TurnByName {
  readonly #last = new Map<string, Promise<unknown>>()

  take<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(name) ?? Promise.resolve()
    const mine = before.then(work, work)
    this.#last.set(name, mine)
    const leave = () => {
      if (this.#last.get(name) === mine) this.#last.delete(name)
    }
    mine.then(leave, leave)
    return mine
  }

  /** The turn of all names at once. */
  takeAll<Result>(names: readonly string[], work: () => Promise<Result>): Promise<Result> {
    const [first, ...others] = [...new Set(names)].sort() // in one order, so that nobody waits for who waits for him
    return first === undefined ? work() : this.take(first, () => this.takeAll(others, work))
  }
}

/** Runs work one at a time, in the order of the calls. Work that fails does not keep others from running. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve()

  run<Result>(work: () => Promise<Result>): Promise<Result> {
    const mine = this.#last.then(work, work)
    this.#last = mine
    return mine
  }
}

/** Runs work on the same name one at a time, in the order of the calls; different names do not wait for each other. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>()

  run<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(name) ?? Promise.resolve()
    const mine = before.then(work, work)
    this.#last.set(name, mine)
    const leave = () => {
      if (this.#last.get(name) === mine) this.#last.delete(name)
    }
    mine.then(leave, leave)
    return mine
  }

  /** Holds the turns of all names at once. */
  runAll<Result>(names: readonly string[], work: () => Promise<Result>): Promise<Result> {
    const [first, ...others] = [...new Set(names)].sort() // always in the same order, to prevent deadlocks
    return first === undefined ? work() : this.run(first, () => this.runAll(others, work))
  }
}

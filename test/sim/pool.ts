/** Runs seeds on several threads. Each has a separate database, because a run empties the one that it has. */
import { Worker } from 'node:worker_threads'
import type { Defence } from './processes.ts'
import type { SimulationResult } from './simulate.ts'
import type { OnlyWork } from './world.ts'

export interface SeedRun {
  readonly seed: number
  readonly hasLosses: boolean
  readonly hasNetwork?: boolean
  readonly hasRestores?: boolean
  readonly hasAccidents?: boolean
  readonly only?: OnlyWork | undefined
  readonly without?: Defence | undefined
  /** Run twice, the second time with other plans of the database; that both end the same is part of the result. */
  readonly isRepeated: boolean
}

export type SeedResult = SimulationResult

export interface Pool {
  /** The result of the seed, once a thread has come to it: seeds start in the order in which they were given. Throws
   *  when the simulation itself fails. */
  run(seedRun: SeedRun): Promise<SeedResult>
  close(): Promise<void>
}

interface Waiting {
  readonly seedRun: SeedRun
  readonly resolve: (result: SeedResult) => void
  readonly reject: (error: unknown) => void
}

/** A pool of one thread for each database. */
export function openPool(databaseUrls: readonly string[]): Pool {
  const queue: Waiting[] = []
  let failure: unknown
  const threads = databaseUrls.map((url) => {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: url })
    const thread: { worker: Worker; current: Waiting | undefined } = { worker, current: undefined }
    worker.on('message', (result: SeedResult) => {
      thread.current?.resolve(result)
      thread.current = undefined
      next()
    })
    worker.on('error', (error) => fail(new Error(`seed ${thread.current?.seedRun.seed}`, { cause: error })))
    return thread
  })

  function next(): void {
    for (const thread of threads) {
      if (thread.current !== undefined) continue
      thread.current = queue.shift()
      if (thread.current !== undefined) thread.worker.postMessage(thread.current.seedRun)
    }
  }

  /** What failed once would fail again: nothing else is run. */
  function fail(error: unknown): void {
    failure ??= error
    for (const thread of threads) thread.current?.reject(error)
    for (const { reject } of queue.splice(0)) reject(error)
  }

  return {
    run: (seedRun) =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) return reject(failure)
        queue.push({ seedRun, resolve, reject })
        next()
      }),
    async close() {
      await Promise.all(threads.map(({ worker }) => worker.terminate()))
    },
  }
}

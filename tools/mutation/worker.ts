/** One worker: has a copy of the tree, and reports for each mutant whether a test detects it. Started by `main.ts`,
 *  which kills it when a mutant does not end by itself. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createVitest } from 'vitest/node'
import { onParentMessage, processArguments, sendToParent } from '../../kit/sys/process.ts'
import { systemClock } from '../../kit/sys/clock.ts'

export interface Job {
  /** The file, and its content while the tests run; undefined to run the unchanged source. */
  readonly change?: { readonly file: string; readonly mutated: string; readonly original: string } | undefined
  /** Run one after the other until one fails. */
  readonly tests: readonly string[]
}

export interface MutantVerdict {
  /** The test that failed; undefined when all passed. */
  readonly killedBy: string | undefined
  readonly milliseconds: number
}

const [root = '', ...projects] = processArguments()
const vitest = await createVitest('test', {
  root,
  project: [...projects],
  watch: false,
  reporters: [],
  fileParallelism: false,
})

async function passes(test: string): Promise<boolean> {
  const specifications = await vitest.globTestSpecifications([join(root, test)])
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications, false)
  const own = testModules.filter(({ moduleId }) => moduleId === join(root, test))
  return unhandledErrors.length === 0 && own.length > 0 && own.every((module) => module.ok())
}

async function judge({ change, tests }: Job): Promise<MutantVerdict> {
  const startedAt = systemClock.monotonicMilliseconds()
  if (change !== undefined) await writeFile(join(root, change.file), change.mutated)
  let killedBy: string | undefined
  for (const test of tests) {
    if (await passes(test)) continue
    killedBy = test
    break
  }
  if (change !== undefined) await writeFile(join(root, change.file), change.original)
  return { killedBy, milliseconds: Math.round(systemClock.monotonicMilliseconds() - startedAt) }
}

// Only `main.ts` sends jobs.
onParentMessage((message) => void judge(message as Job).then(sendToParent))
sendToParent({ isReady: true })

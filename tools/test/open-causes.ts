/** Test files that fail by chance and whose cause is not fixed yet: `test/open-causes.json`. Only these files are
 *  retried. */
import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { ROOT } from './program.ts'
import type { Report } from './tally.ts'

export interface OpenCause {
  /** The path of the test file from the root. */
  readonly file: string
  /** The facts known of it, and where to look. */
  readonly cause: string
  /** The day of its first occurrence. */
  readonly since: string
}

export async function openCauses(): Promise<readonly OpenCause[]> {
  const text = await readFile(join(ROOT, 'test/open-causes.json'), 'utf8')
  return JSON.parse(text) as OpenCause[] // our own file, held by a test
}

/** The causes of the failed files; none when a failed file is not on the list: that fails the tier. */
export function causesOf(report: Report | undefined, causes: readonly OpenCause[]): readonly OpenCause[] {
  const failed = report?.testResults.filter(({ status }) => status === 'failed') ?? []
  const found = failed.map(({ name }) => causes.find(({ file }) => file === relative(ROOT, name)))
  return found.every((cause) => cause !== undefined) ? found : []
}

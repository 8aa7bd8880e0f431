/** The tests that are run for a mutated file: the one of its mirrored path first, then those that import it, the
 *  nearest first. */
import { readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { parseSync } from 'oxc-parser'

/** The maximum import distance between a file and its tests. */
const DISTANCE_MAXIMUM = 2
const TESTS_MAXIMUM = 4

export interface Imports {
  /** The files of the tree that the file imports. */
  readonly of: ReadonlyMap<string, readonly string[]>
}

/** Reads the imports of every TypeScript file of the list. Paths are relative to `root`. */
export async function readImports(root: string, files: readonly string[]): Promise<Imports> {
  const known = new Set(files)
  const read = async (file: string): Promise<readonly [string, string[]]> => {
    const { module } = parseSync(file, await readFile(posix.join(root, file), 'utf8'))
    const paths = module.staticImports.map(({ moduleRequest }) => moduleRequest.value)
    const inTree = paths.filter((path) => path.startsWith('.')).map((path) => posix.join(posix.dirname(file), path))
    return [file, inTree.filter((path) => known.has(path))]
  }
  return { of: new Map(await Promise.all(files.map(read))) }
}

/** The tests among `tests` that are run for the file; the most likely to detect a change of it come first. */
export function testsFor(file: string, tests: readonly string[], imports: Imports): string[] {
  const ranked = tests.flatMap((test) => {
    const distance = distanceOf(test, file, imports)
    return isMirror(test, file) ? [{ test, rank: 0 }] : distance === undefined ? [] : [{ test, rank: distance }]
  })
  return ranked
    .sort(
      (a, b) =>
        a.rank - b.rank ||
        cost(a.test) - cost(b.test) ||
        shared(b.test, file) - shared(a.test, file) ||
        (a.test < b.test ? -1 : 1),
    )
    .slice(0, TESTS_MAXIMUM)
    .map(({ test }) => test)
}

/** `test/domain/account/quota.test.ts` mirrors `domain/account/quota.ts`. */
const isMirror = (test: string, file: string): boolean =>
  test.replace(/^test\//, '').split('.')[0] === file.replace(/\.ts$/, '')

/** The number of import steps from the test to the file; undefined when there are too many, or no path. */
function distanceOf(test: string, file: string, { of }: Imports): number | undefined {
  let reached: readonly string[] = [test]
  for (let distance = 1; distance <= DISTANCE_MAXIMUM; distance++) {
    reached = [...new Set(reached.flatMap((each) => of.get(each) ?? []))]
    if (reached.includes(file)) return distance
  }
  return undefined
}

/** A test that needs something of the machine is slower than one that needs nothing. */
const cost = (test: string): number => test.split('.').length

/** How many leading folders the test and the file have in common. */
function shared(test: string, file: string): number {
  const [one, other] = [test.replace(/^test\//, '').split('/'), file.split('/')]
  const differing = one.findIndex((part, index) => part !== other[index])
  return differing < 0 ? one.length : differing
}

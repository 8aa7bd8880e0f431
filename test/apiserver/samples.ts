/** One object of each noun for the tests that loop over routes. How one is made stands beside the tests of its noun, in
 *  `test/apiserver/nouns/<noun>/sample.ts`. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cloud, Person } from './cloud.ts'

export interface SampleMaking {
  readonly cloud: Cloud
  readonly owner: Person
  /** The sample of another noun, by the word of its path; made once. */
  idOf(path: string): Promise<string>
}

/** By the word that paths have for the noun (`ssh-keys`): makes an object of the owner and answers its id. */
export type Samples = Readonly<Record<string, (making: SampleMaking) => Promise<string>>>

async function readSamples(): Promise<Samples> {
  const files = (await readdir(import.meta.dirname, { recursive: true })).filter((file) => file.endsWith('/sample.ts'))
  const modules = await Promise.all(
    files.map(async (file) => (await import(join(import.meta.dirname, file))) as { readonly SAMPLES: Samples }),
  )
  return Object.assign({}, ...modules.map(({ SAMPLES }) => SAMPLES)) as Samples
}

/** Makes them all, at the same time unless `isOneByOne`. Answers their ids, by the word of the path. */
export async function makeSamples(
  parts: Omit<SampleMaking, 'idOf'>,
  { isOneByOne = false }: { readonly isOneByOne?: boolean } = {},
): Promise<Readonly<Record<string, string>>> {
  const samples = await readSamples()
  const made = new Map<string, Promise<string>>()
  const making: SampleMaking = {
    ...parts,
    idOf(path) {
      const make = samples[path]
      if (make === undefined) throw new Error(`there is no sample of ${path}`)
      const id = made.get(path) ?? make(making)
      made.set(path, id)
      return id
    },
  }
  const paths = Object.keys(samples)
  if (isOneByOne) for (const path of paths) await making.idOf(path)
  const ids = await Promise.all(paths.map((path) => making.idOf(path)))
  return Object.fromEntries(paths.map((path, index) => [path, ids[index] ?? '']))
}

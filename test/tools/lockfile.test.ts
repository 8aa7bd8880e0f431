/** `npm ci` refuses a lockfile that leaves out what a package asks for on another platform. Where that package is
 *  already installed, npm neither notices nor mends it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'

const Lockfile = z.object({
  packages: z.record(z.string(), z.object({ optionalDependencies: z.record(z.string(), z.string()).optional() })),
})

/** Where Node looks for a package from a folder of the lockfile, the nearest first. */
const placesOf = (folder: string, name: string): readonly string[] => {
  const parents = folder
    .split('/node_modules/')
    .map((_, index, parts) => parts.slice(0, index + 1).join('/node_modules/'))
  return [...parents.toReversed().map((parent) => `${parent}/node_modules/${name}`), `node_modules/${name}`]
}

it('the lockfile has every optional package, also those of other platforms', async () => {
  const text = await readFile(join(import.meta.dirname, '../../package-lock.json'), 'utf8')
  const { packages } = Lockfile.parse(JSON.parse(text))
  const missing = Object.entries(packages).flatMap(([folder, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter((name) => !placesOf(folder, name).some((place) => place in packages)),
  )
  expect(missing).toEqual([])
})

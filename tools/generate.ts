/** Writes the generated files: `npm run generate`. Today the CRDs, one per kind, from the definitions in `resources/`.
 *  A unit test compares what is committed with what this makes. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { crdOf } from '../kit/kube/crd.ts'
import { printLine, workingDirectory } from '../kit/sys/process.ts'
import { RESOURCES } from '../resources/index.ts'

export const CRD_FOLDER = 'crds'
const CATEGORY = 'svccloud'
const HEADER = '# Generated from resources/ by `npm run generate`; never edited by hand.\n'

/** Text by file name. */
export function crdFiles(): ReadonlyMap<string, string> {
  return new Map(RESOURCES.map((kind) => [`${kind.plural}.yaml`, HEADER + stringify(crdOf(kind, CATEGORY), { lineWidth: 0, aliasDuplicateObjects: false })]))
}

async function main(): Promise<void> {
  const folder = join(workingDirectory(), CRD_FOLDER)
  const files = crdFiles()
  await mkdir(folder, { recursive: true })
  for (const name of await readdir(folder)) if (!files.has(name)) await rm(join(folder, name))
  for (const [name, text] of files) await writeFile(join(folder, name), text)
  printLine(`${files.size} definitions written to ${CRD_FOLDER}/`)
}

if (import.meta.main) await main()

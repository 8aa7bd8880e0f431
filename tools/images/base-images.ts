/** The base images of the Dockerfile, and whether each has a digest: a tag can be moved to another image at any time, a
 *  digest cannot. Digests come from a registry, so none is recorded here; a release passes them as build arguments, to
 *  this and to Docker.
 *
 *  Command line: `npm run image:bases -- [--required] [NAME=IMAGE...]` with build arguments. Prints each image; with
 *  `--required` one without a digest is an error. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { answerHelp } from '../../kit/sys/help.ts'
import { printErrorLine, printLine, processArguments, setExitCode } from '../../kit/sys/process.ts'

export interface BaseImage {
  readonly name: string
  readonly isPinned: boolean
}

const DIGEST = /@sha256:[0-9a-f]{64}$/

/** Each once, in the order of the Dockerfile; without its own stages. Throws for an argument that the Dockerfile does
 *  not accept. */
export function baseImages(dockerfile: string, given: Readonly<Record<string, string>> = {}): readonly BaseImage[] {
  const [head = ''] = dockerfile.split(/^FROM /m)
  const defaults = Object.fromEntries([...head.matchAll(/^ARG (\w+)=(\S+)$/gm)].map(([, name, image]) => [name, image]))
  const unknown = Object.keys(given).find((name) => defaults[name] === undefined)
  if (unknown !== undefined) throw new Error(`the Dockerfile takes no argument ${unknown}`)
  const values: Readonly<Record<string, string | undefined>> = { ...defaults, ...given }
  const froms = [...dockerfile.matchAll(/^FROM (\S+)(?: AS (\S+))?$/gm)]
  const stages = new Set(froms.map(([, , stage]) => stage))
  const names = froms
    .map(([, from = '']) => from.replace(/\$\{(\w+)\}/g, (_all, name: string) => values[name] ?? ''))
    .filter((name) => !stages.has(name))
  return [...new Set(names)].map((name) => ({ name, isPinned: DIGEST.test(name) }))
}

if (import.meta.main) {
  answerHelp(import.meta.filename)
  const words = processArguments()
  const given = words
    .filter((word) => word !== '--required')
    .map((word): [string, string] => {
      const at = word.indexOf('=')
      return [word.slice(0, at), word.slice(at + 1)]
    })
  const dockerfile = await readFile(join(import.meta.dirname, '../../Dockerfile'), 'utf8')
  const images = baseImages(dockerfile, Object.fromEntries(given))
  for (const { name, isPinned } of images) printLine(`${isPinned ? 'by digest' : 'by tag'}: ${name}`)
  if (words.includes('--required') && images.some(({ isPinned }) => !isPinned)) {
    printErrorLine('a release begins with images by digest: give NAME=IMAGE@sha256:… (docs/cluster.md)')
    setExitCode(1)
  }
}

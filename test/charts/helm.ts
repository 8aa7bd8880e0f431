/** The real helm and kubeconform against a real API server. */

import { execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toolPath } from '../../tools/cluster/build.ts'

export interface Outcome {
  readonly code: number
  /** What it printed, errors included. */
  readonly text: string
}

export interface Helm {
  run(...flags: readonly string[]): Promise<Outcome>
  /** The same, failing with helm's own words when helm fails. */
  must(...flags: readonly string[]): Promise<string>
  close(): Promise<void>
}

const DEADLINE_MILLISECONDS = 240_000

/** helm with a separate home, so that nothing of this machine's user is read or written. */
export async function openHelm(kubeconfigFile: string): Promise<Helm> {
  const home = await mkdtemp(join(tmpdir(), 'svccloud-helm-'))
  const run: Helm['run'] = (...flags) =>
    new Promise((resolve) => {
      const child = execFile(
        toolPath('helm'),
        flags,
        {
          env: { PATH: process.env['PATH'], HOME: home, KUBECONFIG: kubeconfigFile },
          timeout: DEADLINE_MILLISECONDS,
          maxBuffer: 64 * 1024 * 1024,
        },
        (_, output, errors) => resolve({ code: child.exitCode ?? -1, text: output + errors }),
      )
    })
  return {
    run,
    async must(...flags) {
      const { code, text } = await run(...flags)
      if (code !== 0) throw new Error(`helm ${flags.join(' ')} ended with ${code}:\n${text}`)
      return text
    },
    close: () => rm(home, { recursive: true, force: true }),
  }
}

type Json = Record<string, unknown>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** A schema of OpenAPI 3.0 as kubeconform wants it: references inside the file, and no fields that are not named. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema === 'string') return schema.replace('#/components/schemas/', '#/definitions/')
  if (!isObject(schema)) return schema
  const shape = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]))
  const isOpen =
    'additionalProperties' in schema ||
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    !isObject(schema['properties'])
  return isOpen ? shape : { ...shape, additionalProperties: false }
}

/** Writes the schemas of every kind that the API server serves to a folder, one file per kind and version. */
export async function writeSchemas(ask: (path: string) => Promise<unknown>, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  // as the API documents it
  const root = (await ask('/openapi/v3')) as { paths: Record<string, { serverRelativeURL: string }> }
  for (const [path, { serverRelativeURL }] of Object.entries(root.paths)) {
    if (!/^apis?\/(.+\/)?v\d/.test(path)) continue
    const document = (await ask(serverRelativeURL)) as { components?: { schemas?: Record<string, Json> } }
    const schemas = document.components?.schemas ?? {}
    const definitions = closed(schemas)
    for (const [name, schema] of Object.entries(schemas)) {
      for (const { group, version, kind } of (schema['x-kubernetes-group-version-kind'] ?? []) as {
        group: string
        version: string
        kind: string
      }[]) {
        // kubeconform takes the version for the group where there is none.
        const file = `${kind}-${group === '' ? version : group}-${version}.json`.toLowerCase()
        await writeFile(join(folder, file), JSON.stringify({ $ref: `#/definitions/${name}`, definitions }))
      }
    }
  }
}

/** Checks manifests against such a folder; kinds that it does not hold are an error, but for those named. */
export function kubeconform(
  manifests: string,
  { schemas, skip = [] }: { schemas: string; skip?: readonly string[] },
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const location = join(schemas, '{{ .ResourceKind }}-{{ .Group }}-{{ .ResourceAPIVersion }}.json')
    const child = spawn(toolPath('kubeconform'), [
      '-strict',
      '-summary',
      '-verbose',
      '-schema-location',
      location,
      ...(skip.length > 0 ? ['-skip', skip.join(',')] : []),
      '-',
    ])
    let text = ''
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()))
    child.once('error', reject)
    child.once('close', (code) => resolve({ code: code ?? -1, text }))
    child.stdin.end(manifests)
  })
}

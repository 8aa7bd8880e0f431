/** The client's types are those of the document, and a strict program that uses them compiles, and only a right one. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { clientFiles } from '../../tools/generate.ts'

const ROOT = join(import.meta.dirname, '../..')

test('the types are those of the routes as they are now; npm run generate writes them', async () => {
  for (const [file, text] of await clientFiles()) expect(await readFile(join(ROOT, 'client', file), 'utf8')).toBe(text)
})

const CONSUMER = `
import { changes, createClient, OperationFailed, pages, SvccloudError, unwrap, waitForOperation } from 'svccloud/client'
import type { CurrentUser, Member, Operation, Server } from 'svccloud/client'

const client = createClient({ url: 'http://127.0.0.1:8080', token: 'secret' })
const place = { zone: 'eu-1a', hostname: 'web', labels: { tier: 'front' } }
const body = { ...place, plan: 'tiny', template: 'tiny-linux' }
const { server, operation } = await unwrap(client.POST('/v1/servers', { body }))
const state: 'creating' | 'starting' | 'started' | 'stopping' | 'stopped' | 'deleting' | 'error' = server.state
const ended: Operation = await waitForOperation(client, operation.id, { onChange: ({ step }) => step.toUpperCase() })
const list = (query: { readonly cursor?: string }) =>
  client.GET('/v1/servers', { params: { query: { ...query, limit: 10, label: ['tier=front'] } } })
for await (const each of pages(list)) each.hostname.length
for await (const change of changes(client, { types: ['server', 'node_pool'] })) {
  if (change.event === 'reset') {
    const why: 'start' | 'cursor_too_old' | 'cursor_unknown' | 'too_many_changes' = change.reason
    why.toUpperCase()
  } else if (change.is === 'set' && change.type === 'server') change.item.hostname.length
  else if (change.is === 'set') change.item.count.toFixed()
}
const { error } = await client.DELETE('/v1/servers/{id}', { params: { path: { id: server.id } } })
const detail: string | undefined = error?.detail
const people: readonly Member[] = (await unwrap(client.GET('/v1/account/members'))).items
const nameOf = ({ user }: CurrentUser, { hostname }: Server): string => user.email + hostname
export const all = [people, nameOf, state, ended, detail, OperationFailed, SvccloudError]
`
const WRONG = `
import { changes, createClient } from 'svccloud/client'
const client = createClient({ url: '' })
// @ts-expect-error no such path
await client.GET('/v1/nonsense')
// @ts-expect-error the id is missing
await client.GET('/v1/servers/{id}')
// @ts-expect-error no number
await client.POST('/v1/servers', { body: { zone: 'z', hostname: 'h', plan: 'p', storage_gibibytes: '20' } })
// @ts-expect-error a required field is missing
await client.POST('/v1/ssh-keys', { body: { name: 'x' } })
// @ts-expect-error no such type
changes(client, { types: ['nonsense'] })
for await (const change of changes(client)) {
  // @ts-expect-error nothing is left of what was removed
  if (change.event === 'change' && change.is === 'removed' && change.type === 'server') change.item.hostname
}
const { data } = await client.GET('/v1/servers/{id}', { params: { path: { id: 'x' } } })
// @ts-expect-error no such state
export const is = data?.server.state === 'nonsense'
`

test('a strict consumer compiles, and mistakes do not', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-consumer-'))
  try {
    await writeFile(join(folder, 'right.ts'), CONSUMER)
    await writeFile(join(folder, 'wrong.ts'), WRONG)
    const compilerOptions = {
      strict: true,
      noUncheckedIndexedAccess: true,
      exactOptionalPropertyTypes: true,
      module: 'esnext',
      moduleResolution: 'bundler',
      target: 'es2024',
      lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'],
      types: [],
      noEmit: true,
      allowImportingTsExtensions: true,
      verbatimModuleSyntax: true,
      isolatedModules: true,
      skipLibCheck: false,
      paths: { 'svccloud/client': [join(ROOT, 'client/index.ts')] },
    }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['right.ts', 'wrong.ts'] }))
    const output = await promisify(execFile)(process.execPath, [
      join(ROOT, 'node_modules/typescript/bin/tsc'),
      '--singleThreaded',
      '-p',
      folder,
    ]).then(
      ({ stdout }) => stdout,
      ({ stdout }: { stdout: string }) => stdout,
    )
    expect(output).toBe('')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

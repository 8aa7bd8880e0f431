import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readKubeconfig, readServiceAccount } from '../../../kit/kube/kubeconfig.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { nodeBinary } from '../../../kit/sys/process.ts'
import { Scheduler, SimulatedProcess } from '../../sim/scheduler.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kubeconfig-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const base64 = (text: string) => Buffer.from(text).toString('base64')
async function config(cluster: object, user: object, current = 'here'): Promise<string> {
  const file = join(folder, 'config')
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': current,
    clusters: [
      { name: 'other', cluster: { server: 'https://other' } },
      { name: 'c', cluster: { server: 'https://10.0.0.1:6443/', ...cluster } },
    ],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
  }
  await writeFile(file, JSON.stringify(content))
  return file
}

test('data in the file: authority, client certificate, token', async () => {
  const file = await config(
    { 'certificate-authority-data': base64('CA'), 'tls-server-name': 'api' },
    { token: 't', 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY') },
  )
  const { authorization, ...access } = await readKubeconfig(file, systemClock)
  expect(access).toEqual({ url: 'https://10.0.0.1:6443', ca: 'CA', serverName: 'api', certificate: 'CERT', key: 'KEY' })
  expect(await authorization?.()).toBe('Bearer t')
})

test('names of files are relative to the kubeconfig; a token file is read again when it has changed', async () => {
  await writeFile(join(folder, 'ca.pem'), 'CA')
  await writeFile(join(folder, 'token'), 'one\n')
  const scheduler = new Scheduler(1)
  const process = new SimulatedProcess('p', scheduler)
  process.begin()
  const { ca, authorization } = await readKubeconfig(
    await config({ 'certificate-authority': 'ca.pem' }, { tokenFile: 'token' }),
    process.clock(),
  )
  expect(ca).toBe('CA')
  expect(await authorization?.()).toBe('Bearer one')
  await writeFile(join(folder, 'token'), 'two\n')
  expect(await authorization?.()).toBe('Bearer one')
  await scheduler.runUntil(60_000)
  expect(await authorization?.()).toBe('Bearer two')
})

test('a user name and password, and a certificate that is not checked', async () => {
  const { isVerificationSkipped, authorization } = await readKubeconfig(
    await config({ 'insecure-skip-tls-verify': true }, { username: 'u', password: 'p' }),
    systemClock,
  )
  expect(isVerificationSkipped).toBe(true)
  expect(await authorization?.()).toBe(`Basic ${base64('u:p')}`)
})

test('a user that acts as another', async () => {
  expect(
    (await readKubeconfig(await config({}, { token: 't', as: 'grace', 'as-groups': ['staff'] }), systemClock)).actsAs,
  ).toEqual({ user: 'grace', groups: ['staff'] })
  expect((await readKubeconfig(await config({}, { token: 't', as: 'grace' }), systemClock)).actsAs).toEqual({
    user: 'grace',
    groups: [],
  })
})

test('a plugin is run for its credential', async () => {
  const program =
    `console.log(JSON.stringify({apiVersion:'client.authentication.k8s.io/v1',kind:'ExecCredential',` +
    `status:{token:'made'}}))`
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: nodeBinary(),
    args: ['-e', program],
    interactiveMode: 'Never',
  }
  const { authorization } = await readKubeconfig(await config({}, { exec }), systemClock)
  expect(await authorization?.()).toBe('Bearer made')
})

test('an empty file of an authority is refused: Node would trust every public one instead', async () => {
  await writeFile(join(folder, 'nothing.pem'), '\n')
  const file = await config({ 'certificate-authority': 'nothing.pem' }, { token: 't' })
  await expect(readKubeconfig(file, systemClock)).rejects.toThrow('nothing.pem is empty')
})

test.each<[string, () => Promise<string>, RegExp]>([
  ['a context that is not there', () => config({}, {}, 'elsewhere'), /no context "elsewhere"/],
  ['a file that is not there', async () => join(folder, 'none'), /ENOENT/],
])('%s is one clear error', async (_what, file, message) => {
  await expect(readKubeconfig(await file(), systemClock)).rejects.toThrow(message)
})

test('outside a cluster there is no service account', async () => {
  expect(await readServiceAccount({}, systemClock)).toBeUndefined()
})

import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  Flag,
  List,
  Port,
  SETTINGS_VARIABLE,
  settingsIn,
  SettingsRefused,
  variableOf,
} from '../../../kit/sys/settings.ts'

const Example = z.strictObject({
  databaseUrl: z
    .string()
    .min(1)
    .meta({ description: 'URL of the database.', variables: ['DATABASE_URL', 'SVCCLOUD_DATABASE_URL'] }),
  port: Port.default(8080).describe('Port that it listens on.'),
  hasPeers: Flag.default(false).describe('There are others.'),
  trustedProxies: List.default([]).describe('Their addresses.'),
  tokenFile: z.string().optional().describe('File with a token.'),
})
const inJson = (settings: unknown) => settingsIn(Example, { [SETTINGS_VARIABLE]: JSON.stringify(settings) })

test('variables have the names of the fields, the texts of people, and empty lists when they are empty', () => {
  expect(variableOf('trustedProxies')).toBe('SVCCLOUD_TRUSTED_PROXIES')
  const environment = { DATABASE_URL: 'a', SVCCLOUD_PORT: '0', SVCCLOUD_HAS_PEERS: 'true', SVCCLOUD_OTHER: 'x' }
  expect(settingsIn(Example, { ...environment, SVCCLOUD_TRUSTED_PROXIES: '10.0.0.1, ::1,' })).toEqual({
    databaseUrl: 'a',
    port: 0,
    hasPeers: true,
    trustedProxies: ['10.0.0.1', '::1'],
  })
  expect(settingsIn(Example, { SVCCLOUD_DATABASE_URL: 'b', SVCCLOUD_TRUSTED_PROXIES: '' })).toEqual({
    databaseUrl: 'b',
    port: 8080,
    hasPeers: false,
    trustedProxies: [],
  })
  const both = settingsIn(Example, { DATABASE_URL: 'a', SVCCLOUD_DATABASE_URL: 'b' })
  expect(both.databaseUrl).toBe('a')
})

test('the JSON of a parent counts alone', () => {
  const environment = { [SETTINGS_VARIABLE]: '{"databaseUrl":"a","trustedProxies":["::1"]}', SVCCLOUD_PORT: '1' }
  expect(settingsIn(Example, environment)).toMatchObject({ port: 8080, trustedProxies: ['::1'] })
})

test.each([
  ['DATABASE_URL or SVCCLOUD_DATABASE_URL (databaseUrl)', 'databaseUrl', 'DATABASE_URL'],
  ['SVCCLOUD_PORT (port)', 'port', 'SVCCLOUD_PORT'],
  ['SVCCLOUD_HAS_PEERS (hasPeers)', 'hasPeers', 'SVCCLOUD_HAS_PEERS'],
  ['SVCCLOUD_TOKEN_FILE (tokenFile)', 'tokenFile', 'SVCCLOUD_TOKEN_FILE'],
])('%s that is set to the empty text is refused, and does not count as not set', (names, field, variable) => {
  const refused = `${names}: is empty. Give it a value, or remove it. `
  expect(() => settingsIn(Example, { SVCCLOUD_DATABASE_URL: 'b', [variable]: '' })).toThrow(refused)
  expect(() => inJson({ databaseUrl: 'b', [field]: '' })).toThrow(refused)
})

test('what is missing, wrong or unknown is refused by its name, without its value', () => {
  expect(() => settingsIn(Example, {})).toThrow(
    'DATABASE_URL or SVCCLOUD_DATABASE_URL (databaseUrl): is not set. URL of the database.',
  )
  expect(() => settingsIn(Example, { DATABASE_URL: 'a', SVCCLOUD_PORT: 'eighty', SVCCLOUD_HAS_PEERS: 'si' })).toThrow(
    /SVCCLOUD_PORT \(port\): .*\nSVCCLOUD_HAS_PEERS \(hasPeers\): must be true or false\. There are others\./,
  )
  expect(() => inJson({ databaseUrl: 'a', prot: 1 })).toThrow('prot: there is no such setting')
  expect(() => settingsIn(Example, { DATABASE_URL: 'a', SVCCLOUD_PORT: 'hunter2' })).toThrow(
    expect.not.objectContaining({ message: expect.stringContaining('hunter2') }),
  )
  for (const text of ['', 'no', '[]', 'null'])
    expect(() => settingsIn(Example, { [SETTINGS_VARIABLE]: text })).toThrow(SettingsRefused)
})

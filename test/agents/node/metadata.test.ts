import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { metadataDocument, metaDataText, networkConfigText, seedDisk } from '../../../agents/node/serve/metadata.ts'
import { instanceSpec } from './instance-spec.ts'

const spec = instanceSpec()
const document = metadataDocument({
  ...spec,
  metadata: { ...spec.metadata, publicKeys: ['ssh-ed25519 AAAA one "quoted" \\ key', '  ', 'ssh-rsa BBBB two\n'] },
})

it('the meta-data is YAML that a line-wise reader understands too', () => {
  const text = metaDataText(document)
  expect(parse(text)).toEqual({
    'instance-id': 'server-1',
    'local-hostname': 'web-1',
    'public-keys': ['ssh-ed25519 AAAA one "quoted" \\ key', 'ssh-rsa BBBB two'],
  })
  expect(text.split('\n')).toContain('  - "ssh-rsa BBBB two"')
  expect(parse(metaDataText(metadataDocument(spec)))).toMatchObject({ 'public-keys': [] })
})

it('a key cannot add lines', () => {
  const evil = metadataDocument({
    ...spec,
    metadata: { ...spec.metadata, publicKeys: ['ssh-rsa A\nlocal-hostname: evil'] },
  })
  expect(parse(metaDataText(evil))).toMatchObject({
    'local-hostname': 'web-1',
    'public-keys': ['ssh-rsa A\nlocal-hostname: evil'],
  })
  expect(
    metaDataText(evil)
      .split('\n')
      .filter((line) => line.startsWith('local-hostname')),
  ).toEqual(['local-hostname: web-1'])
})

it('the network is configured by MAC address', () => {
  expect(parse(networkConfigText(document))).toEqual({
    version: 2,
    ethernets: { net0: { match: { macaddress: '52:54:00:12:34:56' }, dhcp4: true, dhcp6: false, 'accept-ra': true } },
  })
})

it('the network is configured with the addresses of the server, and a shell finds them', () => {
  const addresses = {
    ipv4: { address: '203.0.113.2', prefix: 24, gateway: '203.0.113.1' },
    ipv6: { address: '2001:db8::1', prefix: 64, gateway: 'fe80::1' },
  }
  const addressed = metadataDocument({
    ...spec,
    interfaces: [{ macAddress: '52:54:00:12:34:56', kind: 'public', ...addresses, routedPrefixes: ['2001:db8::/64'] }],
  })
  expect(addressed.interfaces).toEqual([{ mac: '52:54:00:12:34:56', kind: 'public', ...addresses }])
  expect(parse(networkConfigText(addressed)).ethernets.net0).toMatchObject({
    addresses: ['203.0.113.2/24', '2001:db8::1/64'],
    dhcp4: true,
    'accept-ra': true,
  })
  expect(networkConfigText(addressed).split('\n')).toContain('    addresses: ["203.0.113.2/24","2001:db8::1/64"]')
})

it('the seed disk is the same for the same input', () => {
  expect(seedDisk(document, undefined)).toEqual(seedDisk(document, undefined))
  expect(seedDisk(document, Buffer.from('#!/bin/sh\n')).includes('#!/bin/sh')).toBe(true)
  expect(seedDisk(document, undefined).includes('#cloud-config')).toBe(true)
})

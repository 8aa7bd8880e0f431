import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import { expect, test } from 'vitest'
import { readCertificateRequest } from '../../../kit/sys/certificate-request.ts'

const NAME = 'O=system:nodes, CN=system:node:web-0'

async function requestFor(name: string, extensions: x509.Extension[]): Promise<string> {
  x509.cryptoProvider.set(webcrypto)
  const signingAlgorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(signingAlgorithm, true, ['sign', 'verify'])
  const made = await x509.Pkcs10CertificateRequestGenerator.create({ name, keys, signingAlgorithm, extensions })
  return made.toString('pem')
}
const names = (list: x509.JsonGeneralNames) => new x509.SubjectAlternativeNameExtension(list)

test('says the names that it asks for, addresses in one form', async () => {
  const pem = await requestFor(NAME, [
    names([
      { type: 'dns', value: 'web-0' },
      { type: 'ip', value: '10.1.0.5' },
      { type: 'ip', value: 'fd00:0:0:0:0:0:0:5' },
    ]),
  ])
  expect(readCertificateRequest(pem)).toEqual({
    commonName: 'system:node:web-0',
    organizations: ['system:nodes'],
    hasMore: false,
    dnsNames: ['web-0'],
    ipAddresses: ['10.1.0.5', 'fd00::5'],
  })
  expect(readCertificateRequest(await requestFor(NAME, []))).toMatchObject({ dnsNames: [], hasMore: false })
})

test('reports when it asks for more', async () => {
  const more = [
    await requestFor(NAME, [names([{ type: 'url', value: 'https://kubernetes.default/' }])]),
    await requestFor(NAME, [names([{ type: 'email', value: 'a@example.test' }])]),
    await requestFor(NAME, [new x509.BasicConstraintsExtension(true)]),
    await requestFor(`${NAME}, OU=other`, []),
    await requestFor(`${NAME}, CN=admin`, []),
  ]
  expect(more.map((pem) => readCertificateRequest(pem).hasMore)).toEqual([true, true, true, true, true])
  expect(() => readCertificateRequest('nothing')).toThrow()
})

import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { expect, it } from 'vitest'
import { DAY_MILLISECONDS, makeCertificate } from '../../../kit/sys/certificate.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'

const now = new Date('2026-01-02T03:04:05Z')
const authority = await makeCertificate({ commonName: 'ca', days: 10, isAuthority: true, now, random })

it('an authority signs for the hosts of a server, for the requested time', async () => {
  const made = await makeCertificate({
    commonName: 'server',
    days: 5,
    hosts: ['127.0.0.1', 'db.example'],
    authority,
    now,
    random,
  })
  const certificate = new X509Certificate(made.certificate)
  expect(certificate.verify(createPublicKey(authority.certificate))).toBe(true)
  expect(certificate.checkIssued(new X509Certificate(authority.certificate))).toBe(true)
  expect([
    certificate.checkIP('127.0.0.1'),
    certificate.checkHost('db.example'),
    certificate.checkHost('other.example'),
  ]).toEqual(['127.0.0.1', 'db.example', undefined])
  expect(Date.parse(certificate.validTo) - now.getTime()).toBe(5 * DAY_MILLISECONDS)
  expect(certificate.ca).toBe(false)
  expect(certificate.checkPrivateKey(createPrivateKey(made.key))).toBe(true)
})

it('without an authority its own key signs', async () => {
  const certificate = new X509Certificate(
    (await makeCertificate({ commonName: 'alone', days: 1, now, random })).certificate,
  )
  expect(certificate.verify(certificate.publicKey)).toBe(true)
  expect([certificate.subject, certificate.issuer, certificate.subjectAltName]).toEqual([
    'CN=alone',
    'CN=alone',
    undefined,
  ])
})

it('no two have the same number', async () => {
  const again = await makeCertificate({ commonName: 'ca', days: 10, isAuthority: true, now, random })
  expect(new X509Certificate(again.certificate).serialNumber).not.toBe(
    new X509Certificate(authority.certificate).serialNumber,
  )
})

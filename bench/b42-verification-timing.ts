/** Confirming an address: a link that was mailed once and has expired against one that nobody ever got. */
import { createEmailToken } from '../db/identity/index.ts'
import { systemRandom as random } from '../kit/sys/random.ts'
import type { Bench } from './runner.ts'
import { openStrangers } from './strangers.ts'

const newSecret = () => random.bytes(32).toString('base64url')

export const bench: Bench = {
  name: 'B42 verification timing',
  question: 'an expired against a made-up verification link: 1 tells nothing',
  subjectName: 'links that were mailed',
  peerName: 'made-up links',
  unit: 'refusals',
  goal: 0.9,
  heldBy:
    'a refusal takes a third of a millisecond, so that whatever else the machine does gives a pair of rounds ' +
    'anything from 0.65 to 1.65; both sides do the same.',
  tier: 'database',
  async open(round) {
    const { db, members, asking, close } = await openStrangers(round)
    const mailed = members.map((member) => ({ ...member, secret: newSecret() }))
    const past = new Date(0)
    for (const { secret, userId, email } of mailed)
      await createEmailToken(db, { secret, userId, email, purpose: 'verify_email', now: past, expiresAt: past })
    const confirm = (secrets: readonly string[]) =>
      asking(400, (number) => ({
        method: 'POST',
        path: '/v1/auth/email-verification/confirm',
        body: { token: secrets[number % secrets.length] },
      }))
    return { subject: confirm(mailed.map(({ secret }) => secret)), peer: confirm(members.map(newSecret)), close }
  },
}

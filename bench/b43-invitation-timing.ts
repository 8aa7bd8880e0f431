/** Looking an invitation up: one that has expired against one that nobody ever got. */
import { createInvitation } from '../db/account/index.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import type { Bench } from './runner.ts'
import { openStrangers } from './strangers.ts'

const newSecret = () => random.bytes(32).toString('base64url')

export const bench: Bench = {
  name: 'B43 invitation timing',
  question: 'an expired against a made-up invitation: 1 tells nothing',
  subjectName: 'invitations that were mailed',
  peerName: 'made-up invitations',
  unit: 'refusals',
  goal: 0.9,
  tier: 'database',
  async open(round) {
    const { db, members, asking, close } = await openStrangers(round)
    const mailed = members.map((member) => ({ ...member, secret: newSecret() }))
    const past = new Date(0)
    await db.transaction().execute(async (tx) => {
      for (const { secret, accountId, email } of mailed) {
        await createInvitation(tx, {
          id: newUuid(random),
          accountId,
          email: `guest-of-${email}`,
          role: 'viewer',
          secret,
          invitedByEmail: email,
          now: past,
          expiresAt: past,
        })
      }
    })
    const lookUp = (secrets: readonly string[]) =>
      asking(404, (number) => ({
        method: 'GET',
        path: `/v1/auth/invitation?invitation=${secrets[number % secrets.length]}`,
      }))
    return { subject: lookUp(mailed.map(({ secret }) => secret)), peer: lookUp(members.map(newSecret)), close }
  },
}

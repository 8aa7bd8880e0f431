/** `/login` and `/login/mfa`. */
import { type ReactNode, useEffect, useState } from 'react'
import { Link as AriaLink } from 'react-aria-components'
import { defined } from '../../domain/defined.ts'
import { takeFromFragment } from '../api/browser.ts'
import { forget } from '../api/cache.ts'
import { sessionLost } from '../api/client.ts'
import { safeReturn } from '../api/return-to.ts'
import { t } from '../texts/index.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Note } from '../ui/state.tsx'
import { Outside } from './outside.tsx'
import { LazySecondFactor, SignIn } from './sign-in.tsx'

const parameter = (name: string): string | undefined => new URLSearchParams(location.search).get(name) ?? undefined

/** The cache holds nothing of whoever was signed in before. */
function enter(returnTo: string | undefined): void {
  forget()
  sessionLost.set(false)
  location.replace(safeReturn(returnTo, location.origin))
}

export function LoginPage(): ReactNode {
  const error = parameter('error')
  const returnTo = parameter('return_to')
  return (
    <Outside
      title={t().sign.in}
      note={t().sign.inNote}
      below={
        <>
          {t().sign.noAccount} <AriaLink href="/signup">{t().sign.signUp}</AriaLink>
        </>
      }
    >
      {error === undefined ? null : <Note look="busy">{t().sign.errors[error] ?? t().sign.unknownError}</Note>}
      <SignIn onDone={(next) => enter(next ?? returnTo)} email={parameter('email') ?? ''} {...defined({ returnTo })} />
    </Outside>
  )
}

/** Identity providers end here: the challenge is in the fragment. */
export function LoginFactorPage(): ReactNode {
  const [found, setFound] = useState<{ readonly challenge: string; readonly step: string }>()
  useEffect(() => {
    const members = new URLSearchParams(location.hash.slice(1))
    const challenge = members.get('challenge') ?? ''
    takeFromFragment('challenge')
    setFound((before) => before ?? { challenge, step: members.get('mfa_step') ?? 'verify' })
  }, [])
  if (found === undefined) return null
  return (
    <Outside title={found.step === 'enroll' ? t().factor.setUp : t().factor.title}>
      {found.challenge === '' ? (
        <>
          <p>{t().factor.expired}</p>
          <ButtonLink href="/login" kind="primary" isWide>
            {t().factor.startAgain}
          </ButtonLink>
        </>
      ) : (
        <LazySecondFactor
          challenge={found.challenge}
          step={found.step === 'enroll' ? 'enroll' : 'verify'}
          onDone={(session) => enter(session.return_to)}
          onExpired={() => location.replace('/login')}
        />
      )}
    </Outside>
  )
}

/** What is true on every page: an unverified address, a support session. */
import { type ReactNode, useState } from 'react'
import { call } from '../api/client.ts'
import { Refusal } from '../api/refusal.ts'
import { useMe } from '../api/session.ts'
import { ago } from '../texts/format.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { notify } from '../ui/toast.tsx'

export function Banners(): ReactNode {
  const me = useMe()
  if (me === undefined) return null
  return (
    <>
      {me.impersonation === null ? null : <Support impersonation={me.impersonation} />}
      {me.email_verification_required ? <Unverified /> : null}
    </>
  )
}

type Impersonation = NonNullable<NonNullable<ReturnType<typeof useMe>>['impersonation']>

/** It cannot be closed. */
function Support({ impersonation }: { readonly impersonation: Impersonation }): ReactNode {
  const texts = t().banners
  const end = async (): Promise<void> => {
    const { redirect } = await call('end_impersonation')
    location.assign(/^\/(?![/\\])/.test(redirect) || redirect.startsWith('https:') ? redirect : '/login')
  }
  return (
    <div
      className="banner"
      role="region"
      aria-label={texts.support(impersonation.staff_name, texts.supportModes[impersonation.mode])}
    >
      <strong dir="auto">{texts.support(impersonation.staff_name, texts.supportModes[impersonation.mode])}</strong>
      <span dir="auto">{impersonation.reason}</span>
      <span>{ago(impersonation.expires_at)}</span>
      <Button onPress={() => void end()}>{texts.end}</Button>
    </div>
  )
}

function Unverified(): ReactNode {
  const [isBusy, setBusy] = useState(false)
  const send = async (): Promise<void> => {
    setBusy(true)
    try {
      const { email } = await call('request_email_verification')
      notify(t().banners.linkSent(email))
    } catch (error) {
      if (error instanceof Refusal) notify(error.message)
    }
    setBusy(false)
  }
  return (
    <div className="banner" role="region" aria-label={t().banners.unverified}>
      <span>{t().banners.unverified}</span>
      <Button isBusy={isBusy} onPress={() => void send()}>
        {t().banners.sendLink}
      </Button>
    </div>
  )
}

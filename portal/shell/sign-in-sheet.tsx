/** Lies over a page whose session has ended: what was typed there is kept. */
import { type ReactNode, useEffect } from 'react'
import { cache, forget, keyOf } from '../api/cache.ts'
import { sessionLost } from '../api/client.ts'
import { type Me, signedIn } from '../api/session.ts'
import { after } from '../system.ts'
import { t } from '../texts/index.ts'
import { loadSecondFactor, SignIn } from '../pages/sign-in.tsx'
import { Dialog } from '../ui/dialog.tsx'

export function SignInSheet(): ReactNode {
  // soon after the page: the release may be another when its session ends
  useEffect(() => after(1_000, () => void loadSecondFactor().catch(() => undefined)), [])
  if (!sessionLost.use()) return null
  const before = cache.getQueryData<Me>(keyOf('get_current_user'))
  const finish = async (): Promise<void> => {
    cache.removeQueries({ queryKey: ['get_current_user'] })
    const me = await signedIn()
    if (before === undefined || me?.user.id !== before.user.id || me.account_id !== before.account_id) {
      forget()
      location.assign('/dashboard')
      return
    }
    sessionLost.set(false)
    await cache.invalidateQueries()
  }
  return (
    <Dialog title={t().sign.again} onClose={() => undefined} isFirm>
      <p>{t().sign.againNote}</p>
      <SignIn onDone={() => void finish()} email={before?.user.email ?? ''} isSheet />
    </Dialog>
  )
}

/** Addresses without a page, and pages that have failed. */
import type { ErrorComponentProps } from '@tanstack/react-router'
import { Compass, TriangleAlert } from 'lucide-react'
import { type ReactNode, useEffect } from 'react'
import { t } from '../texts/index.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Empty, Page } from '../ui/layout.tsx'

export const MissingPage = (): ReactNode => (
  <main>
    <Page title={t().frame.notFound}>
      <Empty icon={<Compass />} title={t().frame.notFound} text={t().frame.notFoundText}>
        <ButtonLink href="/dashboard">{t().frame.home}</ButtonLink>
      </Empty>
    </Page>
  </main>
)

const RELOADED = 'svccloud.reloaded'

/** A tab that is older than the release asks for files that do not exist now: it is loaded again, once. */
export function BrokenPage({ error }: ErrorComponentProps): ReactNode {
  const isOld = /dynamically imported module|Importing a module/.test(String(error))
  useEffect(() => {
    if (!isOld || sessionStorage.getItem(RELOADED) !== null) return
    sessionStorage.setItem(RELOADED, 'yes')
    location.reload()
  }, [isOld])
  return (
    <main>
      <Page title={t().frame.broken}>
        <Empty icon={<TriangleAlert />} title={t().frame.broken} text={t().frame.brokenText}>
          <Button kind="primary" onPress={() => location.reload()}>
            {t().frame.reload}
          </Button>
        </Empty>
      </Page>
    </main>
  )
}

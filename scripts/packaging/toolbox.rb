class Toolbox < Formula
  desc "@SUMMARY@"
  homepage "@URL@"
  version "@VERSION@"
  license "MIT"

  depends_on :linux

@PROGRAMS@
  resource "share" do
    url "@URL@/@SHARE@"
    sha256 "@SHARE_SUM@"
  end

  def install
    bin.install Dir["toolbox-*"].first => "toolbox"
    resource("share").stage { prefix.install "share" }
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/toolbox --version")
  end
end
